#if FORM == 0
#include <cub/block/block_reduce.cuh>

extern "C" __global__ void apply(float *values)
{
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage memory;
    const float sum = Reduce(memory).Sum(values[threadIdx.x]);
    if (threadIdx.x == 0) {
        values[0] = sum;
    }
}
#elif FORM == 1
#include <cub/block/block_scan.cuh>

extern "C" __global__ void apply(float *values)
{
    using Scan = cub::BlockScan<float, 128>;
    __shared__ typename Scan::TempStorage memory;
    Scan(memory).ExclusiveSum(values[threadIdx.x], values[threadIdx.x]);
}
#else
#include <cub/block/block_radix_sort.cuh>

extern "C" __global__ void apply(float *values)
{
    using Sort = cub::BlockRadixSort<float, 128, 1>;
    __shared__ typename Sort::TempStorage memory;
    float keys[1] = {values[threadIdx.x]};
    Sort(memory).Sort(keys);
    values[threadIdx.x] = keys[0];
}
#endif
