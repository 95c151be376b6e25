#include <cuda/barrier>

extern "C" __global__ void meet(int *out)
{
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) {
        init(&barrier, blockDim.x);
    }
    __syncthreads();
    barrier.arrive_and_wait();
    out[threadIdx.x] = 1;
}
