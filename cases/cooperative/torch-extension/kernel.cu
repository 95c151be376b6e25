// A sum over the whole grid as a PyTorch extension: the host part asks how many blocks can be resident at once, and launches
// cooperatively, which the <<<...>>> of a plain launch does not.
#include <torch/types.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int THREADS = 128;

extern "C" __global__ void grid_sum(const float *values, float *parts, int count)
{
    cg::grid_group grid = cg::this_grid();
    float sum = 0.0f;
    for (int i = grid.thread_rank(); i < count; i += grid.num_threads()) {
        sum += values[i];
    }
    atomicAdd(&parts[blockIdx.x], sum);
    grid.sync();
    if (grid.thread_rank() == 0) {
        for (unsigned int block = 1; block < gridDim.x; ++block) {
            parts[0] += parts[block];
        }
    }
}

void sum_into(torch::Tensor values, torch::Tensor parts)
{
    TORCH_CHECK(values.is_cuda() && parts.is_cuda(), "both tensors must be on the device");
    int device = values.get_device(), processors = 0, resident = 0;
    C10_CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
    C10_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, grid_sum, THREADS, 0));
    TORCH_CHECK(parts.numel() <= processors * resident, "so many blocks cannot be resident at once");
    const float *in = values.data_ptr<float>();
    float *out = parts.data_ptr<float>();
    int count = values.numel();
    void *arguments[] = {&in, &out, &count};
    C10_CUDA_CHECK(cudaLaunchCooperativeKernel(
        (void *)grid_sum, dim3(parts.numel()), dim3(THREADS), arguments, 0, c10::cuda::getCurrentCUDAStream(device)));
}
