"""One function of a number."""

import math

from numba import cuda


def with_gcd(values):
    values[0] = math.gcd(int(values[0]), int(values[1]))


def with_nextafter(values):
    values[0] = math.nextafter(values[0], values[1])


def with_round(values):
    values[0] = round(values[0], 2)


KINDS = {"gcd": with_gcd, "nextafter": with_nextafter, "round": with_round}
apply = cuda.jit(**JIT_OPTIONS)(KINDS[FORM])  # noqa: F821
