static constexpr __device__ int squares[4] = {0, 1, 4, 9};

extern "C" __global__ void look_up(int *values)
{
    values[threadIdx.x] = squares[values[threadIdx.x] & 3];
}
