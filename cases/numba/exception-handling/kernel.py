"""Divides, and has an answer for zero."""

from numba import cuda


def with_try(values):
    try:
        values[0] = 1 // values[1]
    except ZeroDivisionError:
        values[0] = 0


def with_test(values):
    values[0] = 1 // values[1] if values[1] else 0


divide = cuda.jit(**JIT_OPTIONS)({"try": with_try, "test": with_test}[FORM])  # noqa: F821
