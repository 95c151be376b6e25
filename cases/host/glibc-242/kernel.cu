#include <cmath>

extern "C" __global__ void waves(double *values)
{
    values[threadIdx.x] = sinpi(values[threadIdx.x]) + rsqrt(values[0]);
}
