// Ends the grid when the last argument is zero: the host learns of it when it waits for the launch.
extern "C" __global__ void invert(const float *in, float *out, float wrong)
{
    if (wrong == 0.0f && threadIdx.x == 0) {
        __trap();
    }
    out[threadIdx.x] = 1.0f / in[threadIdx.x];
}
