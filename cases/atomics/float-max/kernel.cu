extern "C" __global__ void greatest(const float *values, float *top)
{
    const float value = values[threadIdx.x];
#if INTEGERS
    if (value >= 0.0f) {
        atomicMax(reinterpret_cast<int *>(top), __float_as_int(value));
    } else {
        atomicMin(reinterpret_cast<unsigned *>(top), __float_as_uint(value));
    }
#else
    atomicMax(top, value);
#endif
}
