"""Files that pages assume: the reader's files, written before the sessions of the page run."""

from __future__ import annotations

from collections.abc import Mapping

_PROJECT = {
    "csrc/include/launch.h": "#pragma once\nconstexpr int THREADS = 256;\n",
    "csrc/scale.cu": '#include "launch.h"\n\n__global__ void scale(float *x, float by) { x[blockIdx.x * THREADS + threadIdx.x] *= by; }\n',
    "csrc/shift.cu": '#include "launch.h"\n\n__global__ void shift(float *x, float by) { x[blockIdx.x * THREADS + threadIdx.x] += by; }\n',
}
_OPS = '''\
import cupy

my_add = cupy.RawKernel(r"""
extern "C" __global__ void my_add(float *x) { x[threadIdx.x] += 1; }
""", "my_add", options=("-lineinfo",))
'''

GIVEN: Mapping[str, Mapping[str, str]] = {
    "docs/configuration.md": {**_PROJECT, "ops.py": _OPS},
    "docs/howto/gate-an-extension.md": _PROJECT,
    "docs/howto/which-release-broke-it.md": {"kernel.cu": "__global__ void k(int *x) { *x = 1; }\n"},
}
