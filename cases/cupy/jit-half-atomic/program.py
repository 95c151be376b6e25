import cupy
from cupyx import jit

number = getattr(cupy, TYPE)  # noqa: F821


@jit.rawkernel()
def add(total):
    jit.atomic_add(total, 0, number(1))


add((1,), (32,), (cupy.zeros(1, TYPE),))  # noqa: F821
