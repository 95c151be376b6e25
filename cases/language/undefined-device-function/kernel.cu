__device__ float elsewhere(float value);

extern "C" __global__ void apply(float *values)
{
    values[threadIdx.x] = elsewhere(values[threadIdx.x]);
}
