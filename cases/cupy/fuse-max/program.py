import cupy


def largest(values):
    return cupy.max(cupy.abs(values))


(cupy.fuse(largest) if FUSED else largest)(cupy.zeros(8, TYPE))  # noqa: F821
