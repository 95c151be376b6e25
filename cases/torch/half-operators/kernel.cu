#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if FORM == 0
extern "C" __global__ void add(__half *values)
{
    values[threadIdx.x] = values[threadIdx.x] + values[0];
}
#elif FORM == 1
extern "C" __global__ void add(__half2 *values)
{
    values[threadIdx.x] = values[threadIdx.x] + values[0];
}
#elif FORM == 2
extern "C" __global__ void add(__nv_bfloat16 *values)
{
    values[threadIdx.x] = values[threadIdx.x] + values[0];
}
#elif FORM == 3
extern "C" __global__ void add(__half *values, float value)
{
    values[threadIdx.x] = value;
}
#else
extern "C" __global__ void add(__half *values)
{
    values[threadIdx.x] = __hadd(values[threadIdx.x], values[0]);
}
#endif
