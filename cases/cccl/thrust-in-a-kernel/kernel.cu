#if FORM == 0
#include <thrust/pair.h>

extern "C" __global__ void apply(int *values)
{
    const auto both = thrust::make_pair(values[threadIdx.x], 2);
    values[threadIdx.x] = both.first * both.second;
}
#elif FORM == 1
#include <thrust/tuple.h>

extern "C" __global__ void apply(int *values)
{
    const auto both = thrust::make_tuple(values[threadIdx.x], 2);
    values[threadIdx.x] = thrust::get<0>(both) * thrust::get<1>(both);
}
#elif FORM == 2
#include <thrust/execution_policy.h>
#include <thrust/sort.h>

extern "C" __global__ void apply(int *values)
{
    thrust::sort(thrust::seq, values, values + 8);
}
#else
#include <thrust/complex.h>

extern "C" __global__ void apply(thrust::complex<float> *values)
{
    values[threadIdx.x] = values[threadIdx.x] * values[0];
}
#endif
