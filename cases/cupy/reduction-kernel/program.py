import cupy

squares = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "squares")
difference = cupy.ElementwiseKernel("T x, T y", "T z", "z = x - y" if DEFINED else "z = x - w", "difference")  # noqa: F821

values = cupy.zeros((4, 8), TYPE)  # noqa: F821
difference(values, squares(values, axis=1)[:, None])
