"""Pairs that change the CUDA toolkit; each has its own copy."""

from __future__ import annotations

from .changes import append, delete, older, unseen, write
from .pair import KERNEL, TWO, Pair

FP16 = "#include <cuda_fp16.h>\n#ifndef N\n#define N 1\n#endif\n" + KERNEL
LATE = "#if __has_include(<late.h>)\n#include <late.h>\n#else\n#define N 1\n#endif\n" + KERNEL
MISSING = "#include <late.h>\n" + KERNEL
EDIT = append("@toolkit@/include/cuda_fp16.h", "\n#define N 2\n")
PTXAS = '#!/bin/sh\nexec @store@/bin/ptxas "$@"\n'
NOT_TODAY = 'case "$*" in *kernel*) echo "ptxas fatal   : not today"; exit 255;; esac\n'

TOOLKITS = (
    Pair(name="toolkit-header", backends=("nvrtc", "nvcc"), files={"kernel.cu": FP16}, copy="local", change=(EDIT,)),
    Pair(name="toolkit-header-older", backends=("nvrtc", "nvcc"), files={"kernel.cu": FP16}, copy="local", change=(older(EDIT),)),
    Pair(name="toolkit-header-size-and-time-as-before", backends=("nvrtc", "nvcc"), copy="local",
         files={"kernel.cu": "#include <own.h>\n" + KERNEL, "@toolkit@/include/own.h": "#define N 1\n"},
         change=(unseen(write("@toolkit@/include/own.h", TWO)),)),
    Pair(name="toolkit-header-added", backends=("nvrtc", "nvcc", "cupy-nvrtc"), files={"kernel.cu": LATE}, copy="local",
         change=(write("@toolkit@/include/late.h", TWO),)),
    Pair(name="toolkit-header-added-after-not-found", backends=("nvrtc", "nvcc"), files={"kernel.cu": MISSING}, copy="local",
         change=(write("@toolkit@/include/late.h", TWO),)),
    Pair(name="toolkit-header-goes", backends=("nvrtc",), files={"kernel.cu": "#include <own.h>\n" + KERNEL, "@toolkit@/include/own.h": TWO}, copy="local",
         change=(delete("@toolkit@/include/own.h"),)),
    Pair(name="toolkit-of-the-store-header-added", backends=("nvrtc",), files={"kernel.cu": LATE}, copy="store", change=(write("@toolkit@/include/late.h", TWO),)),
    Pair(name="nvcc-profile", backends=("nvcc",), copy="local", change=(write("extra/late.h", TWO), append("@toolkit@/bin/nvcc.profile", '\nINCLUDES += "-I@here@/extra"\n')),
         files={"kernel.cu": LATE}),
    Pair(name="toolkit-tool", backends=("nvcc",), copy="local", files={"kernel.cu": "#define N 1\n" + KERNEL, "@toolkit@/bin/ptxas": PTXAS},
         change=(write("@toolkit@/bin/ptxas", PTXAS.replace("exec", NOT_TODAY + "exec")),)),
    Pair(name="toolkit-tool-size-and-time-as-before", backends=("nvcc",), copy="local",
         files={"kernel.cu": "#define N 1\n" + KERNEL, "@toolkit@/bin/ptxas": PTXAS.replace("exec", NOT_TODAY.replace("kernel", "nobody") + "exec")},
         change=(unseen(write("@toolkit@/bin/ptxas", PTXAS.replace("exec", NOT_TODAY + "exec"))),)),
)  # fmt: skip
