"""The root of each value."""

import math  # noqa: F401

import numpy as np  # noqa: F401
from numba import cuda

ROOT = {"numpy": np.sqrt, "math": math.sqrt}[FORM]  # noqa: F821  (the case's parameter)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def roots(values):
    i = cuda.grid(1)
    values[i] = ROOT(values[i])
