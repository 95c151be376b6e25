"""Prints a value."""

from numba import cuda


def with_f_string(values):
    print(f"value {values[0]}")


def with_arguments(values):
    print("value", values[0])


tell = cuda.jit(**JIT_OPTIONS)({"f-string": with_f_string, "arguments": with_arguments}[FORM])  # noqa: F821
