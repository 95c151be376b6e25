"""Arithmetic in half precision."""

from numba import cuda
from numba.types import float16


def with_arithmetic(values):
    half = float16(values[0])
    values[0] = half * half + half


def with_division(values):
    half = float16(values[0])
    values[0] = half / float16(values[1])


def with_function(values):
    values[0] = cuda.fp16.hsin(float16(values[0]))


KINDS = {"arithmetic": with_arithmetic, "division": with_division, "function": with_function}
apply = cuda.jit(**JIT_OPTIONS)(KINDS[FORM])  # noqa: F821
