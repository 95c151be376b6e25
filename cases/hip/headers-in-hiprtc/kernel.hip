#include <hip/hip_runtime.h>
#if HALF
#include <hip/hip_fp16.h>
#endif
#if GROUPS
#include <hip/hip_cooperative_groups.h>
#endif

extern "C" __global__ void scale(float *values)
{
    values[threadIdx.x] *= 2.0f;
#if GROUPS
    cooperative_groups::this_grid().sync();
#endif
}
