"""Reverses BYTES bytes of floats by way of dynamic shared memory: the launch brings the size."""

from numba import cuda, float32

LENGTH = BYTES // 4  # noqa: F821  (the case's parameter)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def reverse(source, target):
    buffer = cuda.shared.array(0, float32)  # a length of 0 is Numba's spelling of `extern __shared__`
    for i in range(cuda.threadIdx.x, LENGTH, cuda.blockDim.x):
        buffer[i] = source[i]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, LENGTH, cuda.blockDim.x):
        target[i] = buffer[LENGTH - 1 - i]
