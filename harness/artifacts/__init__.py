"""What came out of a compiler, read back: target, kernels, resources."""

from harness.artifacts.contents import Contents
from harness.artifacts.cubin import is_relocatable, read_cubin
from harness.artifacts.ptx import read_ptx

__all__ = ["Contents", "is_relocatable", "read_cubin", "read_ptx"]
