import cupy


def total(values):
    return cupy.where(values == 0, cupy.inf if INFINITY else 1e30, values).sum()  # noqa: F821


cupy.fuse(total)(cupy.zeros(8, "float32"))
