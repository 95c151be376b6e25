#if OBJECT
extern "C" __global__ void look_up(cudaTextureObject_t table, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(table, threadIdx.x);
}
#else
texture<float, 1, cudaReadModeElementType> table;

extern "C" __global__ void look_up(float *out)
{
    out[threadIdx.x] = tex1Dfetch(table, threadIdx.x);
}
#endif
