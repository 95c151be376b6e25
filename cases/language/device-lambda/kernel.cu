template <class Operation>
__device__ void apply(int *values, Operation operation)
{
    values[threadIdx.x] = operation(values[threadIdx.x]);
}

extern "C" __global__ void next(int *values)
{
#if MARKED
    apply(values, [] __device__(int value) { return value + 1; });
#else
    apply(values, [](int value) { return value + 1; });
#endif
}
