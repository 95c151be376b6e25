#include <thrust/functional.h>

#if BASE
struct Square : thrust::unary_function<int, int> {
#else
struct Square {
#endif
    __host__ __device__ int operator()(int value) const { return value * value; }
};

extern "C" __global__ void apply(int *values)
{
    values[threadIdx.x] = Square()(values[threadIdx.x]);
}
