#if FORM == 0
#include <algorithm>
#define GREATER(a, b) std::max(a, b)
#elif FORM == 1
#include <limits>
#define GREATER(a, b) ((a) > (b) ? (a) : std::numeric_limits<int>::max())
#else
constexpr int greater_of(int a, int b) { return a > b ? a : b; }
#define GREATER(a, b) greater_of(a, b)
#endif

extern "C" __global__ void apply(int *values, const int *others)
{
    values[threadIdx.x] = GREATER(values[threadIdx.x], others[threadIdx.x]);
}
