#include <cuda_fp16.h>
#include <cuda_bf16.h>

extern "C" __global__ void convert(const __half *in, __nv_bfloat16 *out)
{
#if BY_FLOAT
    out[threadIdx.x] = __float2bfloat16(__half2float(in[threadIdx.x]));
#else
    out[threadIdx.x] = __nv_bfloat16(in[threadIdx.x]);
#endif
}
