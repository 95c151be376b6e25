#if NEW
#include <thrust/iterator/counting_iterator.h>
typedef thrust::counting_iterator<int> Counting;
#else
#include <cub/iterator/counting_input_iterator.cuh>
typedef cub::CountingInputIterator<int> Counting;
#endif

extern "C" __global__ void number(int *out)
{
    const Counting numbers(100);
    out[threadIdx.x] = numbers[threadIdx.x];
}
