// Fetches 1 KiB to shared memory and waits for its bytes.
extern "C" __global__ void fetch(const float *in, float *out)
{
    __shared__ __align__(128) float tile[256];
    __shared__ __align__(8) unsigned long long arrived;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    const unsigned barrier = static_cast<unsigned>(__cvta_generic_to_shared(&arrived));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" : : "r"(barrier));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" : : "r"(barrier) : "memory");
#if MULTICAST
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], 1024, [%2], %3;"
                     : : "r"(to), "l"(__cvta_generic_to_global(in)), "r"(barrier), "h"(static_cast<unsigned short>(1)) : "memory");
#else
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];"
                     : : "r"(to), "l"(__cvta_generic_to_global(in)), "r"(barrier) : "memory");
#endif
    }
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "WAIT: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra WAIT;\n"
                 "}" : : "r"(barrier) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
