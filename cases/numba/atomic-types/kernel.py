"""Counts into an array of the case's type."""

import numba
from numba import cuda

ELEMENT = getattr(numba.types, TYPE)  # noqa: F821  (the case's parameter)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def count(out):
    counter = cuda.shared.array(1, ELEMENT)
    cuda.atomic.add(counter, 0, ELEMENT(1))
    out[0] = 1.0
