"""Notes on the code of a built cell: tensor cores, spills, local memory."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Case, KernelResources, Outcome, Status
from harness.model.kernels import name_of, tensor_cores_of

FEATURE = "tensor-cores"
"""Feature of cases whose code is expected to use tensor cores."""

TENSOR_CORES, NO_TENSOR_CORES, SPILLS, LOCAL = "tensor cores: ", "no tensor cores", "spills ", "local memory: "
"""Beginnings of the notes."""

_MUCH_LOCAL = 1024  # bytes per thread: an array, or a stack that is not known at compile time


def code_notes(case: Case, outcome: Outcome) -> Iterator[str]:
    """Notes on what the kernels of a built cell have in their code; unknown values give none.

    A cell without tensor cores gets a note only in a case with that feature.
    """
    if outcome.status is not Status.BUILT or outcome.artifact is None:
        return
    kernels = outcome.artifact.kernels
    found = tensor_cores_of(kernel.tensor_cores for kernel in kernels)
    if found and (case.program or FEATURE in case.features):
        yield f"{TENSOR_CORES}{found.replace(' ', ', ')}"
    elif found == "" and FEATURE in case.features:
        yield NO_TENSOR_CORES
    if worst := _most(kernels, "spill_bytes", 1):
        yield f"{SPILLS}{worst.spill_bytes} bytes of registers ({name_of(worst.name)})"
    if worst := _most(kernels, "local_bytes", _MUCH_LOCAL):
        yield f"{LOCAL}{worst.local_bytes} bytes per thread ({name_of(worst.name)})"


def _most(kernels: tuple[KernelResources, ...], resource: str, least: int) -> KernelResources | None:
    """The kernel that has the most of a resource, if that is at least so much."""
    found = max(kernels, key=lambda kernel: getattr(kernel, resource) or 0, default=None)
    return found if found and (getattr(found, resource) or 0) >= least else None
