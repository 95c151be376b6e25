// https://github.com/cupy/cupy/issues/8146
#include <mma.h>

extern "C" __global__ void halve(const float *in, float *out)
{
    out[threadIdx.x] = in[threadIdx.x] * 0.5f;
}
