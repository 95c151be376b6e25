"""Half of each value."""


def halve(values, out):
    out[:] = values * 0.5
