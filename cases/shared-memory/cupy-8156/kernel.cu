// A kernel that mixes cooperative groups with a static array of BYTES bytes.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void rotate(const float *in, float *out, int count)
{
    __shared__ float buffer[BYTES / sizeof(float)];
    cg::thread_block block = cg::this_thread_block();
    for (int i = block.thread_rank(); i < count; i += block.size()) {
        buffer[i] = in[i];
    }
    block.sync();
    for (int i = block.thread_rank(); i < count; i += block.size()) {
        out[i] = buffer[(i + 1) % count];
    }
}
