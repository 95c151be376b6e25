#ifdef HEADER
#include HEADER
#endif

extern "C" __global__ void halve(float4 *values)
{
    values[threadIdx.x].x /= 2;
}
