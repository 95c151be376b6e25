// The sum of a warp.
extern "C" __global__ void total(int *values)
{
    int sum = values[threadIdx.x];
    for (int step = 16; step; step /= 2) {
#if MASKED
        sum += __shfl_down_sync(0xffffffffu, sum, step);
#else
        sum += __shfl_down(sum, step);
#endif
    }
    values[threadIdx.x] = sum;
}
