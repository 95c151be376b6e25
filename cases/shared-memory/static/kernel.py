"""Reverses a block's values by way of an array in static shared memory of exactly BYTES bytes."""

from numba import cuda, float32

LENGTH = BYTES // 4  # noqa: F821  (the case's parameter)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def reverse(source, target):
    buffer = cuda.shared.array(LENGTH, float32)
    count = source.shape[0]
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        buffer[i] = source[i]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        target[i] = buffer[count - 1 - i]
