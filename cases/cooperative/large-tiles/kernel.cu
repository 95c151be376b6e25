#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void pairs_of_warps(int *out)
{
    __shared__ cg::block_tile_memory<128> memory;
    const auto block = cg::this_thread_block(memory);
    const auto tile = cg::tiled_partition<64>(block);
    tile.sync();
    out[block.thread_rank()] = static_cast<int>(tile.thread_rank());
}
