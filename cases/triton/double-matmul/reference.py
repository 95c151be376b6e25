"""The product."""


def product(a, b, c):
    c[:] = a @ b
