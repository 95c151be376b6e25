"""Eight blocks add the values to each element."""


def add(x, out):
    out += 8 * x
