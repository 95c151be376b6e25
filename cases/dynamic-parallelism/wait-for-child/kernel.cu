__global__ void fill(int *out)
{
    out[threadIdx.x] = 1;
}

__global__ void collect(int *out)
{
    out[0] += out[31];
}

// Fills an array by another kernel, and then does something with it.
extern "C" __global__ void parent(int *out)
{
    fill<<<1, 32>>>(out);
#if TAIL
    collect<<<1, 1, 0, cudaStreamTailLaunch>>>(out);
#else
    cudaDeviceSynchronize();
    out[0] += out[31];
#endif
}
