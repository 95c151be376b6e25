"""A number that the last pass through a loop chooses in a branch."""

from numba import cuda


@cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
def pick(out, flag):
    choice = 0
    for step in range(3):
        if step == 2:
            if flag:
                choice = 5
            else:
                choice = 7
            break
        choice = 3
    out[0] = choice
