// The sum of all values.
extern "C" __global__ void total(const double *values, double *sum)
{
#if LOOP
    unsigned long long *place = reinterpret_cast<unsigned long long *>(sum), seen = *place, before;
    do {
        before = seen;
        seen = atomicCAS(place, before, static_cast<unsigned long long>(__double_as_longlong(__longlong_as_double(before) + values[threadIdx.x])));
    } while (seen != before);
#else
    atomicAdd(sum, values[threadIdx.x]);
#endif
}
