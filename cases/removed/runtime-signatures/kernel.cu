#include <cuda.h>
#include <cuda_runtime.h>

// With GUARDED what each release wants, without it what CUDA 12 and older had.
#define NEW (GUARDED && CUDART_VERSION >= 13000)

#if CALL == 0
cudaError_t call(const float *data, size_t bytes, int device, cudaStream_t stream)
{
#if NEW
    cudaMemLocation place = {cudaMemLocationTypeDevice, device};
    return cudaMemPrefetchAsync(data, bytes, place, 0, stream);
#else
    return cudaMemPrefetchAsync(data, bytes, device, stream);
#endif
}
#elif CALL == 1
cudaError_t call(const float *data, size_t bytes, int device)
{
#if NEW
    cudaMemLocation place = {cudaMemLocationTypeDevice, device};
    return cudaMemAdvise(data, bytes, cudaMemAdviseSetReadMostly, place);
#else
    return cudaMemAdvise(data, bytes, cudaMemAdviseSetReadMostly, device);
#endif
}
#elif CALL == 2
CUresult call(CUcontext *context, CUdevice device)
{
#if NEW
    return cuCtxCreate(context, nullptr, 0, device);
#else
    return cuCtxCreate(context, 0, device);
#endif
}
#else
cudaError_t call(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to)
{
#if NEW
    return cudaGraphAddDependencies(graph, &from, &to, nullptr, 1);
#else
    return cudaGraphAddDependencies(graph, &from, &to, 1);
#endif
}
#endif

extern "C" __global__ void increment(int *values)
{
    values[threadIdx.x] += 1;
}
