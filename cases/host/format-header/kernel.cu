// Device code never uses it; the header is the host's.
#include <format>
#include <string>

extern "C" __global__ void ones(float *values)
{
    values[threadIdx.x] = 1;
}

std::string told(int blocks)
{
    return std::format("{} blocks", blocks);
}
