extern "C" __global__ void square(__float128 *values)
{
    values[threadIdx.x] = values[threadIdx.x] * values[threadIdx.x];
}
