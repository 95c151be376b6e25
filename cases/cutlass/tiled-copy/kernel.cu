// 128 x 128 accumulators of m16n8k16 over eight warps, to half, to shared memory, out. With DANGLING, the half fragment is
// a view of a local variable of the function that converted it, moved by DefaultCopy; without, the caller owns it.
#include <cute/tensor.hpp>
#include <cutlass/array.h>
#include <cutlass/numeric_conversion.h>
#include <cutlass/numeric_types.h>

namespace tiles {

using namespace cute;
using Half = cutlass::half_t;

constexpr int edge = 128;

using Instruction = MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>;
using EightWarps = Layout<Shape<_8, _1, _1>>;
#if TILED_MMA_BY_LAYOUT
using HalfProduct = TiledMMA<Instruction, EightWarps, Layout<Shape<_1, _2, _1>>>;
#else
using HalfProduct = TiledMMA<Instruction, EightWarps, Tile<Int<edge>, _16, _16>>;
#endif

// Columns in four panels of 32, each panel's rows one after another.
using Staging = Layout<Shape<Int<edge>, Shape<_32, _4>>, Stride<_32, Stride<_1, Int<32 * edge>>>>;

#if DANGLING
using HalfMover = Copy_Atom<DefaultCopy, Half>;

template <class Fragment>
__device__ auto converted(const Fragment &from) {
  constexpr int count = decltype(size(from))::value;
  cutlass::NumericArrayConverter<Half, float, count> convert;
  auto values = convert(*reinterpret_cast<const cutlass::Array<float, count> *>(from.data()));
  return make_tensor(make_rmem_ptr<Half>(&values), from.layout());
}
#else
using HalfMover = Copy_Atom<UniversalCopy<Half>, Half>;

template <class Fragment>
__device__ auto converted(const Fragment &from) {
  auto to = make_fragment_like<Half>(from);
  copy(from, to);
  return to;
}
#endif

} // namespace tiles

extern "C" __global__ void tiled_copy(const float *in, tiles::Half *out) {
  using namespace tiles;
  __shared__ __align__(128) Half staged[edge * edge];
  const int thread = threadIdx.x;
  HalfProduct product;
  auto sums = partition_fragment_C(product, Shape<Int<edge>, Int<edge>>{});
  for (int i = 0; i < size(sums); ++i)
    sums(i) = in[thread * size(sums) + i];
  auto halves = converted(sums);
  auto tiled = make_tiled_copy_C(HalfMover{}, product);
  auto mover = tiled.get_thread_slice(thread);
  auto tile = make_tensor(make_smem_ptr(staged), Staging{});
  copy(tiled, mover.retile_S(halves), mover.partition_D(tile));
  __syncthreads();
  for (int i = thread; i < edge * edge; i += blockDim.x)
    out[i] = staged[i];
}
