#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void apply(int *values)
{
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
#if FORM == 0
    cg::invoke_one(warp, [=] { values[0] += 1; });
#elif FORM == 1
    auto grid = cg::this_grid();
    auto token = grid.barrier_arrive();
    values[threadIdx.x] += 1;
    grid.barrier_wait(static_cast<decltype(token) &&>(token));
#elif FORM == 2
    const auto group = cg::labeled_partition(warp, values[threadIdx.x] & 1);
    values[threadIdx.x] = static_cast<int>(group.size());
#else
    auto cluster = cg::this_cluster();
    cluster.sync();
    values[threadIdx.x] = static_cast<int>(cluster.num_blocks());
#endif
}
