#include <thrust/execution_policy.h>
#include <thrust/transform.h>

struct Square {
    __host__ __device__ int operator()(int value) const { return value * value; }
};

void squares(const int *in, int *out, int count)
{
#if COUNTED
    thrust::transform_n(thrust::device, in, count, out, Square());
#else
    thrust::transform(thrust::device, in, in + count, out, Square());
#endif
}

extern "C" __global__ void apply(int *values)
{
    values[threadIdx.x] = Square()(values[threadIdx.x]);
}
