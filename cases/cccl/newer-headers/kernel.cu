#if FORM == 0
#include <cuda/std/bit>
#define DO(values) values[0] = cuda::std::bit_cast<float>(cuda::std::popcount(7u))
#elif FORM == 1
#include <cuda/std/optional>
#define DO(values) values[0] = cuda::std::optional<float>(values[1]).value_or(3.0f)
#elif FORM == 2
#include <cuda/std/expected>
#define DO(values) values[0] = *cuda::std::expected<float, int>(values[1])
#elif FORM == 3
#include <cuda/std/mdspan>
#define DO(values) values[0] = cuda::std::mdspan<float, cuda::std::extents<int, 4, 4>>(values)(1, 2)
#elif FORM == 4
#include <cuda/std/variant>
#define DO(values) values[0] = static_cast<float>(cuda::std::variant<int, float>(values[1]).index())
#elif FORM == 5
#include <cuda/std/inplace_vector>
#define DO(values) values[0] = static_cast<float>(cuda::std::inplace_vector<float, 4>(2, values[1]).size())
#else
#include <cuda/std/string_view>
#define DO(values) values[0] = static_cast<float>(cuda::std::string_view("abc").size())
#endif

extern "C" __global__ void apply(float *values)
{
    DO(values);
}
