#include <cuda_runtime.h>

// The device's clock in kHz.
int clock_of(int device)
{
    int rate = 0;
#if ATTRIBUTE
    cudaDeviceGetAttribute(&rate, cudaDevAttrClockRate, device);
#else
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
        rate = properties.clockRate;
    }
#endif
    return rate;
}

extern "C" __global__ void increment(int *values)
{
    values[threadIdx.x] += 1;
}
