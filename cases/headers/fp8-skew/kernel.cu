#if FP8
#include <cuda_fp8.h>
typedef __nv_fp8_e4m3 Small;
#else
#include <cuda_fp16.h>
typedef __half Small;
#endif

extern "C" __global__ void convert(const float *in, Small *out)
{
    out[threadIdx.x] = Small(in[threadIdx.x]);
}
