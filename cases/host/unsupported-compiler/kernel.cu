// Any program will do: nvcc reads crt/host_config.h in front of it, and that asks the host compiler for its version.
#include <cmath>

extern "C" __global__ void roots(float *values)
{
    values[threadIdx.x] = std::sqrt(values[threadIdx.x]);
}
