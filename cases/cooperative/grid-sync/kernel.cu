// A sum over the whole grid in one launch: every block writes its part, all wait, block 0 adds the parts up.
// Launch it cooperatively (cudaLaunchCooperativeKernel), with no more blocks than can be resident at once.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void grid_sum(const float *values, float *parts, int count)
{
    cg::grid_group grid = cg::this_grid();
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        sum += values[i];
    }
    atomicAdd(&parts[blockIdx.x], sum);
    grid.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (unsigned int block = 1; block < gridDim.x; ++block) {
            parts[0] += parts[block];
        }
    }
}
