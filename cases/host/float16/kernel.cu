// C's own names for floating-point types, in the host's half: what they come to is the host compiler's affair.
extern "C" __global__ void ones(float *values)
{
    values[threadIdx.x] = 1;
}

TYPE twice(TYPE number)
{
    return number + number;
}
