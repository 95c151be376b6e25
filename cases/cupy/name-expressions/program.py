import cupy

CODE = """
#if COMPLEX
#include <cupy/complex.cuh>
#endif
template <typename T> __global__ void twice(T *values) { values[threadIdx.x] += values[threadIdx.x]; }
"""

module = cupy.RawModule(
    code=CODE,
    options=(f"-DCOMPLEX={int(HEADER)}", *OPTIONS),
    name_expressions=["twice<float>", NAME],  # noqa: F821
)
kernel = module.get_function(ASKED)  # noqa: F821
kernel((1,), (32,), (cupy.zeros(32, "complex64"),))
