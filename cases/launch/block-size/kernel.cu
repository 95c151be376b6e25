extern "C" __global__ void __launch_bounds__(THREADS) increment(int *values)
{
    values[threadIdx.x] += 1;
}
