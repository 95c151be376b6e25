#if FORM == 0
#include <cstdint>
#include <limits>
#define LEAST std::numeric_limits<std::int32_t>::min()
#elif FORM == 1
#include <cuda/std/cstdint>
#include <cuda/std/limits>
#define LEAST cuda::std::numeric_limits<cuda::std::int32_t>::min()
#elif FORM == 2
#include <assert.h>
#include <stdio.h>
#define LEAST -2147483648
#else
#define LEAST -2147483648
#endif

extern "C" __global__ void clear(int *values)
{
#if FORM >= 2
    assert(values != nullptr);
    printf("%d\n", values[threadIdx.x]);
#endif
    values[threadIdx.x] = LEAST;
}
