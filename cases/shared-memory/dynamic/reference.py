"""The values from the last to the first."""


def reverse(values, out):
    out[:] = values[::-1]
