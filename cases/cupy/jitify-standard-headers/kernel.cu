#include <cstdint>
#include <type_traits>

extern "C" __global__ void apply(std::uint32_t *values)
{
    values[threadIdx.x] = std::is_same<std::uint32_t, unsigned>::value;
}
