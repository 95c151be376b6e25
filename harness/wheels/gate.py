"""The gate of a package: missing GPUs, the first release without a gap, and differences between two releases."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.model import Target
from harness.model.compatibility import Way
from harness.model.gpus import Gpu
from harness.wheels.coverage import Coverage, coverage
from harness.wheels.entries import Kind, Library, counted_targets
from harness.wheels.fetch import Chosen
from harness.wheels.sources import Found


@dataclass(frozen=True)
class Requirement:
    """GPUs that every library must run on.

    Parameters
    ----------
    gpus : tuple of Gpu
        The GPUs.
    native : bool
        Whether code that the driver compiles does not count.
    complete : bool
        Whether every fatbin of a library must run, instead of at least one.
    """

    gpus: tuple[Gpu, ...]
    native: bool = False
    complete: bool = False

    def lacks(self, relation: Coverage) -> str:
        """Return a library's gap for a GPU as a clause; empty if it has none."""
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
        The missing code.
    """

    source: str
    library: str
    gpu: Gpu
    why: str


def missing(found: Sequence[Found], required: Requirement) -> list[Missing]:
    """Return the gaps of every library, in order."""
    return [
        Missing(source.name, library.name, relation.gpu, why)
        for source in found
        for library in source.libraries
        for relation in coverage(library, required.gpus)
        if (why := required.lacks(relation))
    ]


Read = Callable[[Chosen], list[Missing] | None]
"""Reads a release and returns its gaps, or None for a release without device code."""


@dataclass(frozen=True)
class Since:
    """The outcome of a search.

    Parameters
    ----------
    first : Chosen or None
        The first release without gaps; None if the newest release has gaps.
    before : Chosen or None
        The release before it, with gaps; None if there is no such release.
    read : int
        Number of releases read.
    """

    first: Chosen | None
    before: Chosen | None
    read: int


def since(releases: Sequence[Chosen], read: Read) -> Since:
    """Bisect releases, oldest first, for the first one without gaps.

    A package that gained, lost and regained code for the GPUs has several such releases; the search finds one of them.
    """
    good, bad, count = len(releases) - 1, -1, 1
    if _lacks(read(releases[good])):
        return Since(None, releases[good], count)
    while good - bad > 1:
        middle = (good + bad) // 2
        count += 1
        if _lacks(read(releases[middle])):
            bad = middle
        else:
            good = middle
    return Since(releases[good], releases[bad] if bad >= 0 else None, count)


def _lacks(missing: list[Missing] | None) -> bool:
    return missing is None or bool(missing)


@dataclass(frozen=True)
class Difference:
    """A library in two releases.

    Parameters
    ----------
    library : str
        Its name; the newer release's name if both have it.
    old, new : bool
        Whether each release has it.
    added, removed : Mapping
        Targets by kind of code.
    relations : tuple
        GPUs whose coverage changed: before, after.
    """

    library: str
    old: bool
    new: bool
    added: Mapping[Kind, tuple[Target, ...]] = field(default_factory=dict)
    removed: Mapping[Kind, tuple[Target, ...]] = field(default_factory=dict)
    relations: tuple[tuple[Coverage, Coverage], ...] = ()

    @property
    def lost(self) -> tuple[Gpu, ...]:
        """GPUs that run the older release but not the newer one."""
        return tuple(
            after.gpu for before, after in self.relations
            if after.way in (Way.NONE, Way.UNKNOWN) and before.way in (Way.NATIVE, Way.JIT)
        )  # fmt: skip


def differences(old: Found, new: Found, gpus: Sequence[Gpu]) -> list[Difference]:
    """Return the libraries that differ, sorted by name."""
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
    """Return a library's name without auditwheel's hash and without versions.

    Examples are ``libfaiss-6b43fd57.so`` and ``libcurand.so.10.3``.
    """
    return re.sub(r"-[0-9a-f]{8}(?=\.)|(?<=\.so)[.\d]+$|(?<=[._-])cpython-\d+", "", name)


def _difference(old: Library, new: Library, gpus: Sequence[Gpu]) -> Difference | None:
    added, removed = {}, {}
    for kind in (Kind.SASS, Kind.PTX):
        # All sections count: a driver links relocatable PTX again.
        one, other = (counted_targets(library.units, kind) for library in (old, new))
        added[kind] = tuple(target for target in other if target not in one)
        removed[kind] = tuple(target for target in one if target not in other)
    pairs = zip(coverage(old, gpus), coverage(new, gpus), strict=True)
    changed = tuple((one, other) for one, other in pairs if (one.way, one.complete) != (other.way, other.complete))
    if not changed and not any((*added.values(), *removed.values())):
        return None
    return Difference(new.name, old=True, new=True, added=added, removed=removed, relations=changed)
