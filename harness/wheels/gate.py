"""The gate: what a package must run on, and what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.wheels.coverage import Coverage, coverage
from harness.wheels.sources import Found


@dataclass(frozen=True)
class Requirement:
    """GPUs that every library must run on.

    Parameters
    ----------
    gpus : tuple of Gpu
        The GPUs.
    native : bool
        Whether compilation by the driver does not count.
    complete : bool
        Whether each fatbin of a library must run, and not some of them alone.
    """

    gpus: tuple[Gpu, ...]
    native: bool = False
    complete: bool = False

    def lacks(self, relation: Coverage) -> str:
        """The gap of a library for a GPU, as a clause; empty where there is none."""
        if relation.way in (Way.NONE, Way.UNKNOWN):
            return relation.why or "no device code"
        native = relation.units.get(Way.NATIVE, 0)
        if self.native and not native:
            return "PTX alone, which the driver has to compile"
        if self.complete and self.native and native < relation.total:
            return f"SASS in {native} of {relation.total} fatbins"
        if self.complete and not relation.complete:
            return f"code in {relation.running} of {relation.total} fatbins; the others: {relation.why}"
        return ""


@dataclass(frozen=True)
class Missing:
    """A library that lacks code for a required GPU.

    Parameters
    ----------
    source, library : str
        The wheel or file, and the library in it.
    gpu : Gpu
        The GPU.
    why : str
        What it lacks.
    """

    source: str
    library: str
    gpu: Gpu
    why: str


def missing(found: Sequence[Found], required: Requirement) -> list[Missing]:
    """Every library that lacks something, in order."""
    return [
        Missing(source.name, library.name, relation.gpu, why)
        for source in found
        for library in source.libraries
        for relation in coverage(library, required.gpus)
        if (why := required.lacks(relation))
    ]
