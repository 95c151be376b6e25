#include <cub/cub.cuh>

extern "C" __global__ void increment(int *values)
{
    values[threadIdx.x] += 1;
}
