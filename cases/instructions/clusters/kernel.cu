#if FORM == 0
// Two blocks a cluster, by the kernel's attribute.
extern "C" __global__ void __cluster_dims__(2, 1, 1) meet(unsigned *out)
{
    out[threadIdx.x] = blockIdx.x;
}
#else
// The blocks of a cluster wait for each other; which cluster that is, is the launch's affair.
extern "C" __global__ void meet(unsigned *out)
{
    asm volatile("barrier.cluster.arrive.aligned;\n"
                 "barrier.cluster.wait.aligned;" : : : "memory");
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    out[threadIdx.x] = rank;
}
#endif
