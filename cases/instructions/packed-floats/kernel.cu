// a * b + c, two at a time.
extern "C" __global__ void accumulate(const float2 *a, const float2 *b, float2 *c)
{
#if FORM == 0
    unsigned long long sum = reinterpret_cast<unsigned long long *>(c)[threadIdx.x];
    asm("fma.rn.f32x2 %0, %1, %2, %0;"
        : "+l"(sum)
        : "l"(reinterpret_cast<const unsigned long long *>(a)[threadIdx.x]), "l"(reinterpret_cast<const unsigned long long *>(b)[threadIdx.x]));
    reinterpret_cast<unsigned long long *>(c)[threadIdx.x] = sum;
#elif FORM == 1
    c[threadIdx.x] = __ffma2_rn(a[threadIdx.x], b[threadIdx.x], c[threadIdx.x]);
#else
    c[threadIdx.x].x = fmaf(a[threadIdx.x].x, b[threadIdx.x].x, c[threadIdx.x].x);
    c[threadIdx.x].y = fmaf(a[threadIdx.x].y, b[threadIdx.x].y, c[threadIdx.x].y);
#endif
}
