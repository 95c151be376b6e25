#include <cuda/std/type_traits>

extern "C" __global__ void apply(int *values)
{
    values[threadIdx.x] = cuda::std::is_integral<int>::value;
}
