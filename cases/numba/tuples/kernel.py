"""Looks into tuples that are defined outside of the kernel."""

from collections import namedtuple

from numba import cuda

SIZES = (8, 4, 2)
BLOCK = namedtuple("Block", ["x", "y", "z"])(*SIZES)


def with_unpacking(out):
    x, y, z = BLOCK
    out[0] = x * y * z


def with_slice(out):
    turned = SIZES[::-1]
    out[0] = turned[0]


def with_index(out):
    out[0] = SIZES[0] * SIZES[1] * SIZES[2]


volume = cuda.jit(**JIT_OPTIONS)({"unpacking": with_unpacking, "slice": with_slice, "index": with_index}[FORM])  # noqa: F821
