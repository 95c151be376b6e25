// Reverses a block's values by way of an array in static shared memory of exactly BYTES bytes.
extern "C" __global__ void reverse(const float *in, float *out, int count)
{
    __shared__ float buffer[BYTES / sizeof(float)];
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        buffer[i] = in[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        out[i] = buffer[count - 1 - i];
    }
}
