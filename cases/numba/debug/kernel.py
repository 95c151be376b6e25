"""A kernel with a loop, for the debugger."""

from numba import cuda

KINDS = {
    "debug": {"debug": True, "opt": False},
    "lineinfo": {"lineinfo": True},
}


@cuda.jit(**{**JIT_OPTIONS, **KINDS[FORM]})  # noqa: F821
def total(values):
    total = 0.0
    for value in values:
        total += value
    values[0] = total
