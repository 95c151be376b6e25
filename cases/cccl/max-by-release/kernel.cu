#include <cub/warp/warp_reduce.cuh>
#if NEW
#include <cuda/functional>
#define GREATEST cuda::maximum<int>()
#else
#define GREATEST cub::Max()
#endif

extern "C" __global__ void greatest(int *values)
{
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage memory;
    const int top = Reduce(memory).Reduce(values[threadIdx.x], GREATEST);
    if (threadIdx.x == 0) {
        values[0] = top;
    }
}
