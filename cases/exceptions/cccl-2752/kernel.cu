// A check that the host and a kernel share. WORDS asks the runtime for the error's text, which device code has from the
// device runtime only.
#include <cuda_runtime.h>

__host__ __device__ inline int check(cudaError_t code) {
#if WORDS
  return cudaGetErrorString(code)[0];
#else
  return static_cast<int>(code);
#endif
}

extern "C" __global__ void report(const int *codes, int *out) {
  out[threadIdx.x] = check(static_cast<cudaError_t>(codes[threadIdx.x]));
}
