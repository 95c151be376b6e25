// A kernel with a static array of BYTES bytes.
extern "C" __global__ void rotate(const float *in, float *out, int count)
{
    __shared__ float buffer[BYTES / sizeof(float)];
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        buffer[i] = in[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        out[i] = buffer[(i + 1) % count];
    }
}
