#if HEADER == 1
#include <thrust/complex.h>
typedef thrust::complex<double> Complex;
#else
#include <cupy/complex.cuh>
typedef complex<double> Complex;
#endif

extern "C" __global__ void rotate(Complex *values)
{
    values[threadIdx.x] = exp(values[threadIdx.x]) * conj(values[0]);
}
