extern "C" __global__ void remember(int *values)
{
#if COMPUTED
    static int first = values[0];
#else
    static int first = 7;
#endif
    values[threadIdx.x] += first;
}
