template <class T>
__device__ void keep(T *values)
{
#if BYTES_ONLY
    extern __shared__ __align__(16) unsigned char bytes[];
    T *buffer = reinterpret_cast<T *>(bytes);
#else
    extern __shared__ T buffer[];
#endif
    buffer[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void reverse(float *floats, double *doubles)
{
    keep(floats);
    __syncthreads();
    keep(doubles);
}
