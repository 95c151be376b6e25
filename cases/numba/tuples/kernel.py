"""Looks into a tuple that is defined outside of the kernel."""

from collections import namedtuple

from numba import cuda

BLOCK = namedtuple("Block", ["x", "y", "z"])(8, 4, 2)


def with_unpacking(out):
    x, y, z = BLOCK
    out[0] = x * y * z


def with_slice(out):
    turned = BLOCK[::-1]
    out[0] = turned[0]


def with_index(out):
    out[0] = BLOCK[0] * BLOCK[1] * BLOCK[2]


volume = cuda.jit(**JIT_OPTIONS)({"unpacking": with_unpacking, "slice": with_slice, "index": with_index}[FORM])  # noqa: F821
