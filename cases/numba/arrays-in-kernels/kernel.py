"""The sum of an array's first values, by way of a small array."""

import numpy as np
from numba import cuda, float32

LENGTH = 4


def with_numpy(values):
    small = np.zeros(LENGTH, dtype=np.float32)
    small[0] = values[0]
    values[1] = small[0]


def with_data(values):
    small = cuda.local.array(int(values[0]), float32)
    small[0] = values[0]
    values[1] = small[0]


def with_constant(values):
    small = cuda.local.array(LENGTH, float32)
    small[0] = values[0]
    values[1] = small[0]


fill = cuda.jit(**JIT_OPTIONS)({"numpy": with_numpy, "data": with_data, "constant": with_constant}[FORM])  # noqa: F821
