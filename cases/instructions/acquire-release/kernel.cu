#define OLD (GUARDED && __CUDA_ARCH__ < 700)

// Reads a flag of another block, or counts up for one.
extern "C" __global__ void pass(int *flag, int *out)
{
    int value;
#if FORM == 0 && OLD
    value = *(volatile int *)flag;
    __threadfence();
#elif FORM == 0
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
#elif OLD
    __threadfence();
    value = atomicAdd(flag, 1);
#else
    asm volatile("atom.add.release.gpu.global.s32 %0, [%1], 1;" : "=r"(value) : "l"(flag) : "memory");
#endif
    out[threadIdx.x] = value;
}
