// Takes 32 columns of tensor memory, and gives them back.
extern "C" __global__ void borrow(unsigned *out)
{
    __shared__ unsigned address;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&address));
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" : : "r"(place) : "memory");
    __syncthreads();
    const unsigned columns = address;
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" : : "r"(columns));
    out[threadIdx.x] = columns;
}
