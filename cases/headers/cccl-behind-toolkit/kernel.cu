#if FORM == 0
#include <cuda/std/string_view>
#define DO(values) values[0] = static_cast<float>(cuda::std::string_view("abc").size())
#elif FORM == 1
#include <cuda/cmath>
#define DO(values) values[0] = static_cast<float>(cuda::ceil_div(static_cast<int>(values[1]), 3))
#else
#include <cuda/std/bit>
#define DO(values) values[0] = cuda::std::bit_cast<float>(cuda::std::popcount(7u))
#endif

extern "C" __global__ void apply(float *values)
{
    DO(values);
}
