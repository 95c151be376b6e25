"""The inverse of ones, where no thread traps."""


def invert(values, out, wrong):
    out[:] = 1 / values
