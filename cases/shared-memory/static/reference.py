"""The values from the last to the first."""


def reverse(values, out, count=None):
    out[:] = values[::-1]
