"""How long a vector is."""

import math

import numpy as np
from numba import cuda


def with_dot(vector, out):
    out[0] = math.sqrt(np.dot(vector, vector))


def with_norm(vector, out):
    out[0] = np.linalg.norm(vector)


def with_loop(vector, out):
    total = 0.0
    for value in vector:
        total += value * value
    out[0] = math.sqrt(total)


length = cuda.jit(**JIT_OPTIONS)({"dot": with_dot, "norm": with_norm, "loop": with_loop}[FORM])  # noqa: F821
