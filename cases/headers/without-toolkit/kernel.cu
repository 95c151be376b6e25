#ifdef HEADER
#include HEADER
#endif

extern "C" __global__ void twice(float4 *values)
{
    values[threadIdx.x].x *= 2;
}
