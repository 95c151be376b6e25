#include <cuda/std/cmath>

#if !GUARDED || !defined(FP_NAN)
enum { FP_NAN, FP_INFINITE, FP_ZERO, FP_SUBNORMAL, FP_NORMAL };
#endif

// The class of each number: not a number, or normal.
extern "C" __global__ void kind(const float *x, int *out)
{
    out[threadIdx.x] = x[threadIdx.x] != x[threadIdx.x] ? FP_NAN : FP_NORMAL;
}
