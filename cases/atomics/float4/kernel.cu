extern "C" __global__ void add(VECTOR *to, const VECTOR *values)
{
    atomicAdd(to, values[threadIdx.x]);
}
