#if GUARDED && !defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(__CUDA_ARCH_SPECIFIC__) && !defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define HAND_OVER(how, count)
#else
#define HAND_OVER(how, count) asm volatile("setmaxnreg." how ".sync.aligned.u32 " count ";")
#endif

// The first warp group loads and needs few registers; the second multiplies and takes them.
extern "C" __global__ __launch_bounds__(256) void specialise(int *out)
{
    if (threadIdx.x < 128) {
        HAND_OVER("dec", "40");
        out[threadIdx.x] = 1;
    } else {
        HAND_OVER("inc", "232");
        out[threadIdx.x] = 2;
    }
}
