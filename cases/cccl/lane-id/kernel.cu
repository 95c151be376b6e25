#if NEW
#include <cuda/ptx>
#define LANE cuda::ptx::get_sreg_laneid()
#else
#include <cub/util_ptx.cuh>
#define LANE cub::LaneId()
#endif

extern "C" __global__ void lanes(unsigned *out)
{
    out[threadIdx.x] = LANE;
}
