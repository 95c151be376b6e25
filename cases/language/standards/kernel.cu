#if STANDARD == 17
template <class T>
__device__ T twice(T value)
{
    if constexpr (sizeof(T) > 4) {
        return value * 2;
    } else {
        return value + value;
    }
}
#elif STANDARD == 20
template <class T>
concept Small = sizeof(T) <= 4;

template <Small T>
__device__ T twice(T value)
{
    return value + value;
}
#else
template <class T>
__device__ T twice(T value)
{
    if consteval {
        return 0;
    } else {
        return value + value;
    }
}
#endif

extern "C" __global__ void apply(int *values)
{
    values[threadIdx.x] = twice(values[threadIdx.x]);
}
