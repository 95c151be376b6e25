"""The product, in double precision."""


def product(a, b, c):
    c[:] = a.astype("float64") @ b.astype("float64")
