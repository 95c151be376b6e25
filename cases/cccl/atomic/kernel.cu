#include <cuda/atomic>

extern "C" __global__ void count(int *counter)
{
    cuda::atomic_ref<int, cuda::thread_scope_device> total(*counter);
    total.fetch_add(1, cuda::std::memory_order_relaxed);
}
