__constant__ int table[BYTES / 4];

extern "C" __global__ void look_up(int *values)
{
    values[threadIdx.x] = table[values[threadIdx.x] % (BYTES / 4)];
}
