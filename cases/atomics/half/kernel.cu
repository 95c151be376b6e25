#include <cuda_fp16.h>

#if FORM == 0
extern "C" __global__ void add(__half *to, const __half *values)
{
    atomicAdd(to, values[threadIdx.x]);
}
#elif FORM == 1
extern "C" __global__ void add(__half2 *to, const __half2 *values)
{
    atomicAdd(to, values[threadIdx.x]);
}
#else
// The pair that holds the number, with nothing added to the other one: for an aligned array of even length.
extern "C" __global__ void add(__half *to, const __half *values)
{
    const __half value = values[threadIdx.x], nothing = __float2half(0.0f);
    const size_t index = threadIdx.x;
    atomicAdd(reinterpret_cast<__half2 *>(to) + index / 2, index % 2 ? __halves2half2(nothing, value) : __halves2half2(value, nothing));
}
#endif
