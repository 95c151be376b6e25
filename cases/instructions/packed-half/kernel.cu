// One instruction on each pair.
extern "C" __global__ void apply(unsigned *pairs)
{
    unsigned pair = pairs[threadIdx.x];
#if OPERANDS == 1
    asm(NAME " %0, %0;" : "+r"(pair));
#elif OPERANDS == 2
    asm(NAME " %0, %0, %1;" : "+r"(pair) : "r"(pairs[0]));
#else
    asm(NAME " %0, %0, %1, %0;" : "+r"(pair) : "r"(pairs[0]));
#endif
    pairs[threadIdx.x] = pair;
}
