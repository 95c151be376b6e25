// The host's half may want its own vector instructions, or a header that it includes does.
#if ALL
#include <immintrin.h>
#else
#include <smmintrin.h>
#endif

extern "C" __global__ void ones(float *values)
{
    values[threadIdx.x] = 1;
}

__m128i twice(__m128i numbers)
{
    return _mm_add_epi32(numbers, numbers);
}
