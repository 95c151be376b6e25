"""Device code of a binary as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from harness.model import Target


class Kind(StrEnum):
    """Kinds of device code in a fatbin."""

    PTX = "ptx"
    SASS = "sass"
    LTO = "lto"
    OTHER = "other"


class Packing(StrEnum):
    """Compression of an entry."""

    NONE = ""
    LZ4 = "lz4"
    ZSTD = "zstd"
    OTHER = "other"


@dataclass(frozen=True)
class Entry:
    """One piece of device code.

    Parameters
    ----------
    kind : Kind
        What it is.
    target : Target
        Its target: a real one for SASS, else a virtual one.
    isa : tuple of int
        Version of the PTX; (0, 0) for SASS.
    place, size : int
        Where its bytes are in the file, and how many, as stored.
    packing : Packing
        Its compression.
    length : int
        Bytes without compression.
    name : str
        Identifier that the compiler gave it, such as the source's name.
    """

    kind: Kind
    target: Target
    isa: tuple[int, int]
    place: int
    size: int
    packing: Packing = Packing.NONE
    length: int = 0
    name: str = ""


@dataclass(frozen=True)
class Unit:
    """A fatbin: the device code of one translation unit, or of one link, for several targets.

    Parameters
    ----------
    entries : tuple of Entry
        In file order.
    section : str
        ELF section that has it; empty for a file of its own.
    member : str
        Member of an archive; empty outside of archives.
    place : int
        Where it is in the file.
    linked : bool or None
        Whether nvlink wrote it, and the relocatable fatbins of the same file are its input; None where the file does not tell.
    """

    entries: tuple[Entry, ...]
    section: str = ""
    member: str = ""
    place: int = 0
    linked: bool | None = False


LINKED, RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
"""Sections that the CUDA runtime registers, and that nvlink reads."""


_OTHER = 2


def _rank(unit: Unit) -> int:
    return {LINKED: 0, "": 0, RELOCATABLE: 1}.get(unit.section, _OTHER)


@dataclass(frozen=True)
class Library:
    """A file with device code.

    Parameters
    ----------
    name : str
        Its path within the wheel or folder.
    size : int
        In bytes.
    units : tuple of Unit
        Its fatbins, in file order.
    kernels : Mapping
        Targets by the name of each kernel, as far as names were read.
    unread : tuple of str
        Why the names of some code are missing, a sentence each.
    """

    name: str
    size: int
    units: tuple[Unit, ...] = ()
    kernels: Mapping[str, frozenset[Target]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @cached_property
    def loaded(self) -> tuple[Unit, ...]:
        """Fatbins that decide where the file runs: of each member those that the runtime registers, else those for nvlink, else any."""
        of_member: dict[str, int] = {}
        for unit in self.units:
            rank = _rank(unit)
            of_member[unit.member] = min(rank, of_member.get(unit.member, rank))
        return tuple(unit for unit in self.units if _rank(unit) == of_member[unit.member])

    @cached_property
    def further(self) -> tuple[Unit, ...]:
        """Fatbins of other sections than cuobjdump lists, which the program loads itself, next to those that decide."""
        others = tuple(unit for unit in self.units if _rank(unit) == _OTHER)
        return others if any(_rank(unit) != _OTHER for unit in self.loaded) else ()

    @property
    def relocatable(self) -> bool:
        """Return whether all of it has yet to be linked."""
        return bool(self.units) and not self.of(LINKED, "") and bool(self.of(RELOCATABLE))

    def of(self, *sections: str) -> tuple[Unit, ...]:
        """Fatbins of some sections."""
        return tuple(unit for unit in self.units if unit.section in sections)


def counted_targets(units: Iterable[Unit], kind: Kind) -> dict[Target, int]:
    """Numbers of entries of a kind by target, in the order of targets."""
    found = Counter(entry.target for unit in units for entry in unit.entries if entry.kind is kind)
    return {target: found[target] for target in sorted(found, key=lambda target: target.sort_key)}


def newest_isa(units: Sequence[Unit], target: Target) -> tuple[int, int]:
    """The newest version of the PTX for a target, which decides on the driver that compiles all of it."""
    return max((entry.isa for unit in units for entry in unit.entries if entry.kind is Kind.PTX and entry.target == target), default=(0, 0))  # fmt: skip
