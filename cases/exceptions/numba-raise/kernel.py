"""Ways to complain in a Numba kernel; STYLE chooses one, in Python, before Numba sees anything."""

from numba import cuda

if STYLE == "constant":  # noqa: F821  (the case's parameter)

    @cuda.jit(**JIT_OPTIONS)  # noqa: F821  (given by cumatrix, from the case's options)
    def invert(values):
        i = cuda.threadIdx.x
        if values[i] == 0.0:
            raise ValueError("division by zero")
        values[i] = 1.0 / values[i]

elif STYLE == "class":  # noqa: F821

    @cuda.jit(**JIT_OPTIONS)  # noqa: F821
    def invert(values):
        i = cuda.threadIdx.x
        if values[i] == 0.0:
            raise ZeroDivisionError
        values[i] = 1.0 / values[i]

elif STYLE == "assert":  # noqa: F821

    @cuda.jit(**JIT_OPTIONS)  # noqa: F821
    def invert(values):
        i = cuda.threadIdx.x
        assert values[i] != 0.0, "division by zero"
        values[i] = 1.0 / values[i]

elif STYLE == "value":  # noqa: F821

    @cuda.jit(**JIT_OPTIONS)  # noqa: F821
    def invert(values):
        i = cuda.threadIdx.x
        if values[i] == 0.0:
            raise ValueError(values[i])  # the message is not known when the kernel is compiled
        values[i] = 1.0 / values[i]

else:

    @cuda.jit(**JIT_OPTIONS)  # noqa: F821
    def invert(values):
        i = cuda.threadIdx.x
        try:
            values[i] = 1.0 / values[i]
        except Exception:
            values[i] = 0.0
