extern "C" __global__ void __launch_bounds__(128, 1, 4) increment(int *values)
{
    values[threadIdx.x] += 1;
}
