"""Prints a value."""

from numba import cuda


def with_f_string(values):
    print(f"value {values[0]}")


def with_comparison(values):
    unit = "m"
    if unit == "m":
        values[0] = 1


def with_arguments(values):
    print("value", values[0])


tell = cuda.jit(**JIT_OPTIONS)({"f-string": with_f_string, "comparison": with_comparison, "arguments": with_arguments}[FORM])  # noqa: F821
