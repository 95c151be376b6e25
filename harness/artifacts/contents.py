"""What is read from an artifact."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import KernelResources, Target


@dataclass(frozen=True)
class Contents:
    """Target and kernels of a cubin or a PTX text.

    Parameters
    ----------
    target : Target
        What it is for.
    kernels : tuple of KernelResources
        In the order in which they stand there.
    only_trap : tuple of str
        Names of the kernels that do nothing but end in a trap, whatever they are given.
    """

    target: Target
    kernels: tuple[KernelResources, ...]
    only_trap: tuple[str, ...] = ()
