"""The smallest grid synchronisation, as in https://github.com/numba/numba/issues/9432 up to the launch."""

from numba import cuda


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def wait_for_all():
    grid = cuda.cg.this_grid()
    grid.sync()
