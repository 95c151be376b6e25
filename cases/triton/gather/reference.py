"""The elements that the indices name."""


def pick(x, index, out):
    out[:] = x[index]
