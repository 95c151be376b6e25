#include <hip/hip_runtime.h>

extern "C" __global__ void sum(float *values)
{
    float value = values[threadIdx.x];
    for (int distance = 16; distance; distance /= 2) {
#if SYNC
        value += __shfl_xor_sync(0xffffffffffffffffull, value, distance);
#else
        value += __shfl_xor(value, distance);
#endif
    }
    values[threadIdx.x] = value;
}
