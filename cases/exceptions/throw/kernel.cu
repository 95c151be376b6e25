// Throws in device code, which has nobody to catch it.
extern "C" __global__ void invert(const float *in, float *out)
{
    const float value = in[threadIdx.x];
    if (value == 0.0f) {
        throw 1;
    }
    out[threadIdx.x] = 1.0f / value;
}
