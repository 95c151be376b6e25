"""Arithmetic in half precision."""

import math

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


def with_math(values):
    values[0] = math.sin(float16(values[0]))


def with_integer(values):
    values[0] = float16(values[0]) * 2


KINDS = {"arithmetic": with_arithmetic, "division": with_division, "function": with_function, "math": with_math, "integer": with_integer}
apply = cuda.jit(**JIT_OPTIONS)(KINDS[FORM])  # noqa: F821
