#include <hip/hip_runtime.h>

#if ASSUMED
static_assert(warpSize == 32, "a warp has 32 threads");
#define WARP 32
#else
#define WARP warpSize
#endif

extern "C" __global__ void sum(float *values)
{
    float value = values[threadIdx.x];
    for (int distance = WARP / 2; distance; distance /= 2)
        value += __shfl_xor(value, distance);
    values[threadIdx.x] = value;
}
