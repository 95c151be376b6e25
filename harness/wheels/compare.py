"""Differences between the device code of two releases of a package."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.model import Target
from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.wheels.coverage import Coverage, coverage
from harness.wheels.entries import Kind, Library, counted_targets
from harness.wheels.sources import Found


@dataclass(frozen=True)
class Difference:
    """A library of two releases.

    Parameters
    ----------
    library : str
        Its name, that of the newer release where both have it.
    old, new : bool
        Whether each release has it.
    added, removed : Mapping
        Targets by kind of code.
    relations : tuple
        GPUs whose relation changed: before, after.
    """

    library: str
    old: bool
    new: bool
    added: Mapping[Kind, tuple[Target, ...]] = field(default_factory=dict)
    removed: Mapping[Kind, tuple[Target, ...]] = field(default_factory=dict)
    relations: tuple[tuple[Coverage, Coverage], ...] = ()

    @property
    def lost(self) -> tuple[Gpu, ...]:
        """GPUs that ran the older release alone."""
        return tuple(
            after.gpu for before, after in self.relations
            if after.way in (Way.NONE, Way.UNKNOWN) and before.way in (Way.NATIVE, Way.JIT)
        )  # fmt: skip


def differences(old: Found, new: Found, gpus: Sequence[Gpu]) -> list[Difference]:
    """Libraries that differ, in the order of their names."""
    before, after = ({_same(library.name): library for library in found.libraries} for found in (old, new))
    found = []
    for key in sorted({*before, *after}):
        one, other = before.get(key), after.get(key)
        if one and other:
            if (difference := _difference(one, other, gpus)) is not None:
                found.append(difference)
        elif library := one or other:
            found.append(Difference(library.name, one is not None, other is not None))
    return found


def _same(name: str) -> str:
    """The name of a library without hashes of auditwheel and without versions: ``libfaiss-6b43fd57.so``, ``libcurand.so.10.3``."""
    return re.sub(r"-[0-9a-f]{8}(?=\.)|(?<=\.so)[.\d]+$|(?<=[._-])cpython-\d+", "", name)


def _difference(old: Library, new: Library, gpus: Sequence[Gpu]) -> Difference | None:
    added, removed = {}, {}
    for kind in (Kind.SASS, Kind.PTX):
        # All sections: relocatable PTX is what a driver links again.
        one, other = (counted_targets(library.units, kind) for library in (old, new))
        added[kind] = tuple(target for target in other if target not in one)
        removed[kind] = tuple(target for target in one if target not in other)
    pairs = zip(coverage(old, gpus), coverage(new, gpus), strict=True)
    changed = tuple((one, other) for one, other in pairs if (one.way, one.complete) != (other.way, other.complete))
    if not changed and not any((*added.values(), *removed.values())):
        return None
    return Difference(new.name, old=True, new=True, added=added, removed=removed, relations=changed)
