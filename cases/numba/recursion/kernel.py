"""The factorial of each value."""

from numba import cuda


@cuda.jit(device=True)
def recursive(n):
    if n <= 1:
        return 1
    return n * recursive(n - 1)


@cuda.jit(device=True)
def iterative(n):
    product = 1
    for factor in range(2, n + 1):
        product *= factor
    return product


FACTORIAL = {"recursion": recursive, "loop": iterative}[FORM]  # noqa: F821  (the case's parameter)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def factorials(values):
    i = cuda.grid(1)
    values[i] = FACTORIAL(values[i])
