extern "C" __global__ void ATTRIBUTES increment(int *values)
{
    values[threadIdx.x] += 1;
}
