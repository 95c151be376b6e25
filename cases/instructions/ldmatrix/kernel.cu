// Puts a tile into shared memory and reads or writes it as a matrix.
extern "C" __global__ void move(const unsigned *in, unsigned *out)
{
    __shared__ __align__(128) unsigned tile[128];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x * 4));
    unsigned a = 0, b = 0;
#if FORM == 0
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(place));
#elif FORM == 1
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" : : "r"(place), "r"(a), "r"(b) : "memory");
#else
    asm volatile("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(place));
#endif
    out[threadIdx.x] = a + b + tile[threadIdx.x];
}
