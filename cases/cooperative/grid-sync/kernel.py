"""A sum over the whole grid in one launch: each block writes its part, all wait, block 0 adds the parts up."""

from numba import cuda


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def grid_sum(values, parts):
    grid = cuda.cg.this_grid()
    total = 0.0
    for i in range(cuda.grid(1), values.shape[0], cuda.gridsize(1)):
        total += values[i]
    cuda.atomic.add(parts, cuda.blockIdx.x, total)
    grid.sync()
    if cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0:
        for block in range(1, cuda.gridDim.x):
            parts[0] += parts[block]
