// A kernel that wants compute capability 8.0 and what it does below: with CHECK_IN_KERNEL it calls PyTorch's macro for
// "not implemented" there, as torchao did; without, it is empty below 8.0 and the host checks before it launches.
#if FULL_HEADERS
#include <torch/extension.h>
#else
#include <ATen/core/Tensor.h>
#endif
#include <cuda_bf16.h>
#include <cuda_runtime.h>

extern "C" __global__ void dequantize(const unsigned *packed, __nv_bfloat162 *out, int count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#if CHECK_IN_KERNEL
  TORCH_CHECK_NOT_IMPLEMENTED(false, "dequantize needs compute capability 8.0");
#endif
#else
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    // Two signed bytes to two bfloat16, whose arithmetic is what 8.0 brought.
    float low = static_cast<signed char>(packed[i] & 0xff), high = static_cast<signed char>(packed[i] >> 8 & 0xff);
    out[i] = __hmul2(__floats2bfloat162_rn(low, high), __float2bfloat162_rn(0.5f));
  }
#endif
}

void launch(const unsigned *packed, __nv_bfloat162 *out, int count, cudaStream_t stream) {
#if !CHECK_IN_KERNEL
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  TORCH_CHECK_NOT_IMPLEMENTED(major >= 8, "dequantize needs compute capability 8.0");
#endif
  dequantize<<<(count + 255) / 256, 256, 0, stream>>>(packed, out, count);
}
