extern "C" __global__ void add(unsigned short *to, const unsigned short *values)
{
#if LOOP
    unsigned short seen = *to, before;
    do {
        before = seen;
        seen = atomicCAS(to, before, static_cast<unsigned short>(before + values[threadIdx.x]));
    } while (seen != before);
#else
    atomicAdd(to, values[threadIdx.x]);
#endif
}
