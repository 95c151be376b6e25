float factor = 2.0f;

extern "C" __global__ void scale(float *values)
{
    values[threadIdx.x] *= factor;
}
