"""How many threads of a warp hold the same value, or a short sleep."""

from numba import cuda


def with_match(values):
    i = cuda.grid(1)
    values[i] = cuda.popc(cuda.match_any_sync(0xFFFFFFFF, values[i]))


def with_sleep(values):
    cuda.nanosleep(100)
    values[cuda.grid(1)] += 1


apply = cuda.jit(**JIT_OPTIONS)({"match": with_match, "sleep": with_sleep}[FORM])  # noqa: F821
