"""What came out of a compiler, read back: target, kernels, resources."""

from harness.artifacts.cubin import is_relocatable, only_traps, read_cubin
from harness.artifacts.ptx import only_traps_in_ptx, read_ptx

__all__ = ["is_relocatable", "only_traps", "only_traps_in_ptx", "read_cubin", "read_ptx"]
