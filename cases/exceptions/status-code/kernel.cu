// The second remedy: the kernel reports by a status code that the host reads after the launch.
enum { OK = 0, DIVISION_BY_ZERO = 1, TOO_OLD = 2 };

extern "C" __global__ void invert(const float *in, float *out, int *status)
{
#if __CUDA_ARCH__ >= MINIMUM
    const float value = in[threadIdx.x];
    if (value == 0.0f) {
        atomicCAS(status, OK, DIVISION_BY_ZERO);
        return;
    }
    out[threadIdx.x] = 1.0f / value;
#else
    atomicCAS(status, OK, TOO_OLD);
#endif
}
