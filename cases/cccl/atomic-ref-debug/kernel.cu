#include <cuda/atomic>

extern "C" __global__ void count(int *counter, int *out)
{
    cuda::atomic_ref<int> shared(*counter);
    out[threadIdx.x] = shared.fetch_add(1);
}
