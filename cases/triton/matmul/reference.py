"""The product, in double precision."""


def matmul(a, b, c, K):
    c[:] = a.astype("float64") @ b.astype("float64")
