// The three instructions that stand around every wgmma.mma_async.
extern "C" __global__ void surround(float *out)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = 1.0f;
}
