#if FORM == 1
#include <cuda_fp6.h>
typedef __nv_fp6_e2m3 Small;
#elif FORM == 2
#include <cuda_fp4.h>
typedef __nv_fp4_e2m1 Small;
#elif FORM == 3
#include <cuda_fp8.h>
typedef __nv_fp8_e4m3 Small;
#else
#include <cuda_fp8.h>
typedef __nv_fp8_e8m0 Small;
#endif

extern "C" __global__ void convert(const float *in, Small *out)
{
    out[threadIdx.x] = Small(in[threadIdx.x]);
}
