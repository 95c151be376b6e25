#define WIDE_PTX (__CUDACC_VER_MAJOR__ > 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ >= 9))
#define OLD (GUARDED && (__CUDA_ARCH__ < 1000 || !WIDE_PTX))

// Copies eight words for each thread.
extern "C" __global__ void copy(const unsigned *from, unsigned *to)
{
    const unsigned *source = from + 8 * threadIdx.x;
    unsigned *target = to + 8 * threadIdx.x;
#if OLD
    ((uint4 *)target)[0] = ((const uint4 *)source)[0];
    ((uint4 *)target)[1] = ((const uint4 *)source)[1];
#else
    unsigned a, b, c, d, e, f, g, h;
#if FORM == 0
    asm volatile("ld.global.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
#else
    asm volatile("ld.global.L2::evict_first.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
#endif
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d), "=r"(e), "=r"(f), "=r"(g), "=r"(h)
                 : "l"(source)
                 : "memory");
    asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(target), "r"(a), "r"(b), "r"(c),
                 "r"(d), "r"(e), "r"(f), "r"(g), "r"(h)
                 : "memory");
#endif
}
