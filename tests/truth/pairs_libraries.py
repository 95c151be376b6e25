"""Pairs that change an installed library: editable and development installs, and edited wheels."""

from __future__ import annotations

from importlib.util import find_spec

from .changes import append, older, unseen, write
from .pair import KERNEL, KERNEL_PY, Pair

EDITED_PY = "from numba import cuda\nN = getattr(cuda, 'EDITED', 1)\n" + KERNEL_PY
COMPLEX = "#include <cupy/complex.cuh>\n#ifndef N\n#define N 1\n#endif\n" + KERNEL
WITH_N = "#ifndef N\n#define N 1\n#endif\n" + KERNEL
HEADER = "cupy/_core/include/cupy/complex.cuh"
COMPILER = "cupy/cuda/compiler.py"
# A possible edit of a CuPy developer: one more option for every program.
ONE_MORE = """
_theirs = compile_using_nvrtc
def compile_using_nvrtc(source, options=(), *others, **named):
    return _theirs(source, (*options, "-DN=2"), *others, **named)
"""
CUPY = ("cupy-nvrtc", "cupy-jitify")
CUDA_PY = "numba/cuda/__init__.py"
NUMBA_CUDA_PY = "numba_cuda/numba/cuda/__init__.py"
EXTENSION = "#include <torch/headeronly/macros/Macros.h>\n" + WITH_N
BUILDER = "torch/utils/cpp_extension.py"

LIBRARIES = (
    Pair(name="editable-numba-cuda", backends=("numba-cuda",), environment="editable", files={"kernel.py": EDITED_PY},
         change=(append(f"@source@/{NUMBA_CUDA_PY}", "\nEDITED = 2\n"),)),
    Pair(name="editable-numba-cuda-older", backends=("numba-cuda",), environment="editable", files={"kernel.py": EDITED_PY},
         change=(older(append(f"@source@/{NUMBA_CUDA_PY}", "\nEDITED = 2\n")),)),
    Pair(name="editable-numba-cuda-file-added", backends=("numba-cuda",), environment="editable", change=(write("@source@/numba_cuda/numba/cuda/my_part.py", "N = 2\n"),),
         files={"kernel.py": "try:\n    from numba.cuda.my_part import N\nexcept ImportError:\n    N = 1\n" + KERNEL_PY}),
    Pair(name="wheel-numba-cuda", backends=("numba-cuda",), environment="own", files={"kernel.py": EDITED_PY},
         change=(older(append(f"@site@/{NUMBA_CUDA_PY}", "\nEDITED = 2\n")),)),
    Pair(name="wheel-numba", backends=("numba",), environment="own", files={"kernel.py": EDITED_PY}, change=(append(f"@site@/{CUDA_PY}", "\nEDITED = 2\n"),)),
    Pair(name="wheel-numba-older", backends=("numba",), environment="own", files={"kernel.py": EDITED_PY},
         change=(older(append(f"@site@/{CUDA_PY}", "\nEDITED = 2\n")),)),
    Pair(name="what-a-library-requires", backends=("numba",), environment="own", change=(older(append("@site@/numpy/version.py", "\nEDITED = 2\n")),),
         files={"kernel.py": "import numpy.version\nN = getattr(numpy.version, 'EDITED', 1)\n" + KERNEL_PY}),
    Pair(name="what-no-library-requires", backends=("numba",), environment="own", change=(write("@site@/beside.py", "N = 2\n"),),
         files={"kernel.py": "from beside import N\n" + KERNEL_PY, "@site@/beside.py": "N = 1\n"}),
    Pair(name="shadowed-through-a-pth", backends=("numba",), environment="own", change=(write("mine/beside.py", "N = 2\n"),),
         files={"kernel.py": "from beside import N\n" + KERNEL_PY, "@site@/beside.py": "N = 1\n", "mine/x": "",
                "@site@/mine.pth": 'import sys; sys.path.insert(0, "@here@/mine")\n'}),
    Pair(name="a-pth-appears", backends=("numba",), environment="own", files={"kernel.py": "from beside import N\n" + KERNEL_PY, "@site@/beside.py": "N = 1\n"},
         change=(write("mine/beside.py", "N = 2\n"), write("@site@/mine.pth", 'import sys; sys.path.insert(0, "@here@/mine")\n'))),
    # Debian's Python has its own, which precedes the environment's.
    *([] if find_spec("sitecustomize") else [
    Pair(name="sitecustomize-appears", backends=("numba",), environment="own", change=(write("@site@/sitecustomize.py", "import builtins\nbuiltins.MINE = 2\n"),),
         files={"kernel.py": "import builtins\nN = getattr(builtins, 'MINE', 1)\n" + KERNEL_PY})]),
    Pair(name="pth-cupy-header", backends=CUPY, environment="pth", files={"kernel.cu": COMPLEX}, change=(append(f"@source@/{HEADER}", "\n#define N 2\n"),)),
    Pair(name="pth-cupy-module", backends=("cupy-nvrtc",), environment="pth", files={"kernel.cu": WITH_N}, change=(append(f"@source@/{COMPILER}", ONE_MORE),)),
    Pair(name="wheel-cupy-header", backends=CUPY, environment="own", files={"kernel.cu": COMPLEX}, change=(append(f"@site@/{HEADER}", "\n#define N 2\n"),)),
    Pair(name="wheel-cupy-header-size-and-time-as-before", backends=("cupy-nvrtc",), environment="own", files={"kernel.cu": COMPLEX, f"@site@/{HEADER}": "#define N 1\n"},
         change=(unseen(write(f"@site@/{HEADER}", "#define N 2\n")),)),
    Pair(name="wheel-cupy-header-added", backends=("cupy-nvrtc",), environment="own", change=(write("@site@/cupy/_core/include/cupy/late.cuh", "#define N 2\n"),),
         files={"kernel.cu": "#if __has_include(<cupy/late.cuh>)\n#include <cupy/late.cuh>\n#else\n#define N 1\n#endif\n" + KERNEL}),
    Pair(name="wheel-cupy-module-older", backends=("cupy-nvrtc",), environment="own", files={"kernel.cu": WITH_N}, change=(older(append(f"@site@/{COMPILER}", ONE_MORE)),)),
    Pair(name="wheel-torch-header", backends=("torch-nvcc",), environment="own", files={"kernel.cu": EXTENSION},
         change=(older(append("@site@/torch/include/torch/headeronly/macros/Macros.h", "\n#define N 2\n")),)),
    Pair(name="wheel-torch-module", backends=("torch-nvcc",), environment="own", files={"kernel.cu": WITH_N},
         change=(append(f"@site@/{BUILDER}", "\nCOMMON_NVCC_FLAGS.append('-DN=2')\n"),)),
)  # fmt: skip
