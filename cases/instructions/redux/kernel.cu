// The greatest value of a warp.
#if FORM == 0
extern "C" __global__ void greatest(const int *in, int *out)
{
    out[threadIdx.x] = __reduce_max_sync(0xffffffffu, in[threadIdx.x]);
}
#elif FORM == 1
extern "C" __global__ void greatest(const float *in, float *out)
{
    float top;
    asm volatile("redux.sync.max.f32 %0, %1, 0xffffffff;" : "=f"(top) : "f"(in[threadIdx.x]));
    out[threadIdx.x] = top;
}
#else
extern "C" __global__ void greatest(const float *in, float *out)
{
    float top = in[threadIdx.x];
    for (int step = 16; step; step /= 2) {
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    }
    out[threadIdx.x] = top;
}
#endif
