#include HEADER

extern "C" __global__ void halve(const float *in, float *out)
{
    out[threadIdx.x] = in[threadIdx.x] * 0.5f;
}
