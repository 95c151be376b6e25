// Copies a tile to shared memory and reverses it.
extern "C" __global__ void reverse(const float4 *in, float4 *out)
{
    __shared__ float4 tile[32];
#if GUARDED && __CUDA_ARCH__ < 800
    tile[threadIdx.x] = in[threadIdx.x];
#else
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(in + threadIdx.x) : "memory");
    asm volatile("cp.async.wait_all;" : : : "memory");
#endif
    __syncthreads();
    out[threadIdx.x] = tile[31 - threadIdx.x];
}
