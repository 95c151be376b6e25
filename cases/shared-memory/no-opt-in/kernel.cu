// Reverses BYTES bytes of floats by way of dynamic shared memory: the launch brings the size, the compiler
// never sees it. Above 48 KiB the host would have to raise
// cudaFuncAttributeMaxDynamicSharedMemorySize for this kernel first, and here it does not.
extern "C" __global__ void reverse(const float *in, float *out)
{
    extern __shared__ float buffer[];
    const int count = BYTES / sizeof(float);
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        buffer[i] = in[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        out[i] = buffer[count - 1 - i];
    }
}
