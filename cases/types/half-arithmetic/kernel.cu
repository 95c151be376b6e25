#include <cuda_fp16.h>

extern "C" __global__ void calculate(const __half *in, __half *out)
{
    const __half value = in[threadIdx.x];
#if FORM == 0
    out[threadIdx.x] = value * value + value;
#elif FORM == 1
    out[threadIdx.x] = hexp(value);
#else
    out[threadIdx.x] = __float2half(__half2float(value) * __half2float(value) + __half2float(value));
#endif
}
