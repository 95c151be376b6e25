"""Device code entries as plain values, and the fatbins that contain them.

The layout of a fatbin is what ``fatbinary`` and ``nvcc`` of CUDA 11.8 to 13.5 write (tests/wheels/test_fatbin.py makes such files) and what
cuobjdump lists (docs/wheels.md). All numbers are little-endian.

    container   magic 0xBA55ED50, u16 version 1, u16 size of this header 16, u64 bytes that follow
    entry       u16 kind (1 PTX, 2 SASS, 8 LTO IR), u16 version, u32 size of this header, u64 bytes of code that follow,
                u32 bytes of compressed code, u32 place of options, u16 and u16 version of the PTX (minor, major), u32 compute capability,
                u32 and u32 place and length of the name, u64 flags, u64, u64 bytes of uncompressed code
"""

from __future__ import annotations

import mmap
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from harness.diagnostics import one_line
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
    """A piece of device code.

    Parameters
    ----------
    kind : Kind
        Its kind.
    target : Target
        A real target for SASS, otherwise a virtual one.
    isa : tuple of int
        Version of the PTX; (0, 0) for SASS.
    place, size : int
        Offset and length of its bytes in the file, as stored.
    packing : Packing
        Its compression.
    length : int
        Uncompressed length in bytes.
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

    @property
    def code(self) -> Code:
        """The properties that select the GPUs it runs on."""
        return self.kind, self.target, self.isa


Code = tuple[Kind, Target, tuple[int, int]]
Codes = frozenset[Code]


@dataclass(frozen=True)
class Unit:
    """A fatbin: the device code of one translation unit, or of one link, for several targets.

    Parameters
    ----------
    entries : tuple of Entry
        Entries in file order.
    section : str
        ELF section of the fatbin; empty for a file that is a fatbin itself.
    member : str
        Member of the archive; empty outside archives.
    place : int
        Offset in the file.
    linked : bool or None
        Whether nvlink wrote it from the relocatable fatbins of the same file; None if the file does not show it.
    empty : bool
        Whether its code has neither functions nor variables. No program needs an empty fatbin on any GPU.
    """

    entries: tuple[Entry, ...]
    section: str = ""
    member: str = ""
    place: int = 0
    linked: bool | None = False
    empty: bool = False

    @property
    def codes(self) -> Codes:
        """The properties of its entries that select the GPUs it runs on."""
        return frozenset(entry.code for entry in self.entries)


LINKED, RELOCATABLE = ".nv_fatbin", "__nv_relfatbin"
"""The sections that the CUDA runtime registers and that nvlink reads."""


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
        Its fatbins in file order. Every other property ignores fatbins without code.
    kernels : Mapping
        Targets by kernel name, for the names that were read.
    unread : tuple of str
        Why some names are missing, one sentence each.
    """

    name: str
    size: int
    units: tuple[Unit, ...] = ()
    kernels: Mapping[str, frozenset[Target]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @cached_property
    def with_code(self) -> tuple[Unit, ...]:
        """Fatbins that contain functions or variables."""
        return tuple(unit for unit in self.units if not unit.empty)

    @cached_property
    def loaded(self) -> tuple[Unit, ...]:
        """The fatbins that decide which GPUs run the file.

        Of each member, those that the CUDA runtime registers, otherwise those for nvlink, otherwise all.
        """
        of_member: dict[str, int] = {}
        for unit in self.with_code:
            rank = _rank(unit)
            of_member[unit.member] = min(rank, of_member.get(unit.member, rank))
        return tuple(unit for unit in self.with_code if _rank(unit) == of_member[unit.member])

    @cached_property
    def further(self) -> tuple[Unit, ...]:
        """Fatbins in sections that cuobjdump does not list, which the program loads in addition to `loaded`."""
        others = tuple(unit for unit in self.with_code if _rank(unit) == _OTHER)
        return others if any(_rank(unit) != _OTHER for unit in self.loaded) else ()

    @cached_property
    def kinds(self) -> Counter[tuple[Codes, bool | None]]:
        """Number of `loaded` fatbins by their code, and by whether nvlink wrote them."""
        kinds = Counter((unit.codes, unit.linked) for unit in self.loaded)
        if self.chooses_itself:  # each fatbin has only some of the targets
            return Counter([(frozenset(code for codes, _ in kinds for code in codes), False)])
        return kinds

    @cached_property
    def parts(self) -> frozenset[Codes]:
        """Code of the fatbins that nvlink reads."""
        return frozenset(unit.codes for unit in self.of(RELOCATABLE) if unit.entries)

    @cached_property
    def own(self) -> Codes:
        """Code of `further`."""
        return frozenset(code for unit in self.further for code in unit.codes)

    @property
    def chooses_itself(self) -> bool:
        """Return whether the program loads fatbins from its own sections only, and the CUDA runtime registers none."""
        return not self.of(LINKED, RELOCATABLE, "")

    @property
    def relocatable(self) -> bool:
        """Return whether all of its code is still to be linked."""
        return not self.of(LINKED, "") and bool(self.of(RELOCATABLE))

    def of(self, *sections: str) -> tuple[Unit, ...]:
        """Return the fatbins of some sections."""
        return tuple(unit for unit in self.with_code if unit.section in sections)


def counted_targets(units: Iterable[Unit], kind: Kind) -> dict[Target, int]:
    """Count the entries of a kind by target, in the order of targets."""
    found = Counter(entry.target for unit in units for entry in unit.entries if entry.kind is kind)
    return {target: found[target] for target in sorted(found, key=lambda target: target.sort_key)}


def newest_isa(units: Sequence[Unit], target: Target) -> tuple[int, int]:
    """Return the newest version of the PTX for a target; a driver of that version compiles all of it."""
    return max((entry.isa for unit in units for entry in unit.entries if entry.kind is Kind.PTX and entry.target == target), default=(0, 0))  # fmt: skip


Buffer = bytes | mmap.mmap | memoryview

MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_WRAPPER, _WRAPPER_MAGIC = struct.Struct("<IIQQ"), 0x466243B1
LINK_VERSION = 2
"""Version in ``.nvFatBinSegment`` of a fatbin that nvlink wrote."""
_KINDS = {1: Kind.PTX, 2: Kind.SASS, 8: Kind.LTO}
_ZSTD, _LZ4, _OLD = 0x8000, 0x2000, 0x1000
_SUFFIXES = {0x100000: "a", 0x200000: "f"}
_LONGEST_HEADER, _LONGEST_NAME = 1 << 20, 4096
_MOST_PARTS = 2_000_000  # in one file


class Broken(ValueError):
    """A file that violates its format; the message is a clause."""


class Reader:
    """Reads the fatbins of one file.

    Parameters
    ----------
    data : Buffer
        The file, or a member of an archive.
    base : int
        Offset of `data` in the file.
    member : str
        Name of the archive's member.
    """

    def __init__(self, data: Buffer, base: int = 0, member: str = "") -> None:
        self.data, self.base, self.member = data, base, member
        self._parts = 0

    def segment(self, data: memoryview) -> list[tuple[int, int]]:
        """Return the versions and addresses of the fatbins that ``.nvFatBinSegment`` registers.

        The toolkit's ``fatbinary_section.h`` declares the layout.
        """
        whole = len(data) // _WRAPPER.size * _WRAPPER.size
        found = _WRAPPER.iter_unpack(data[:whole])
        return [(version, address) for magic, version, address, _ in found if magic == _WRAPPER_MAGIC]

    def section(self, place: int, end: int, name: str) -> Iterator[Unit]:
        """Yield the fatbins of a section; padding may separate them.

        Raises
        ------
        Broken
            If a container or an entry is cut off, or other data separates two fatbins.
        """
        while place < end:
            if self.data[place : place + 4] != MAGIC:
                if bytes(self.data[place : place + 8]).strip(b"\0"):
                    raise Broken(f"the section {name} has no fatbin at byte {self.base + place}")
                place = self._behind_padding(place, end)
                continue
            unit, place = self._container(place, end, name)
            yield unit

    def _behind_padding(self, place: int, end: int) -> int:
        """Return the offset of the next non-zero byte, rounded down to a multiple of 8."""
        while place < end:
            piece = bytes(self.data[place : min(place + (1 << 16), end)])
            left = piece.lstrip(b"\0")
            if left:
                return (place + len(piece) - len(left)) // 8 * 8
            place += len(piece)
        return end

    def container(self, place: int, end: int, name: str) -> Unit | None:
        """Return the fatbin at an offset with the magic number, or None if the bytes that follow are no fatbin.

        Sections other than a fatbin's own may contain the magic number by chance.
        """
        try:
            unit, _ = self._container(place, end, name)
        except Broken:
            return None
        return unit

    def _container(self, place: int, end: int, section: str) -> tuple[Unit, int]:
        if place + _CONTAINER.size > end:
            raise Broken(f"the fatbin at byte {self.base + place} is cut off")
        self._count()
        _, version, header, size = _CONTAINER.unpack_from(self.data, place)
        if version != 1 or header != _CONTAINER.size:
            raise Broken(f"the fatbin at byte {self.base + place} has the unknown version {version}")
        last = place + header + size
        if last > end:
            raise Broken(f"the fatbin at byte {self.base + place} is cut off: it has {size} bytes by its header")
        entries = []
        at = place + header
        while at < last:
            entry, at = self._entry(at, last)
            entries.append(entry)
        return Unit(tuple(entries), section, self.member, self.base + place), last

    def _entry(self, place: int, end: int) -> tuple[Entry, int]:
        where = f"the entry at byte {self.base + place}"
        if place + _ENTRY.size > end:
            raise Broken(f"{where} of a fatbin is cut off")
        self._count()
        (kind, _, header, size, packed, _, minor, major, cc, name, name_length, flags, _, length) = _ENTRY.unpack_from(
            self.data, place
        )
        if not _ENTRY.size <= header <= _LONGEST_HEADER or place + header + size > end:
            raise Broken(f"{where} of a fatbin is cut off: it has {header} and {size} bytes by its header")
        if not 10 <= cc < 1000:
            raise Broken(f"{where} of a fatbin has no compute capability: {cc}")
        packing = _packing(flags)
        if packing and packed > size:
            raise Broken(f"{where} of a fatbin has {packed} compressed bytes in {size}")
        known = _KINDS.get(kind, Kind.OTHER)
        suffix = next((letter for bit, letter in _SUFFIXES.items() if flags & bit), "")
        entry = Entry(
            kind=known,
            target=Target(virtual=known is not Kind.SASS, cc=cc, suffix=suffix),
            isa=(major, minor) if known is Kind.PTX else (0, 0),
            place=self.base + place + header,
            size=packed if packing else size,
            packing=packing,
            length=length if packing else size,
            name=self._name(place, header, name, name_length),
        )
        return entry, place + header + size

    def _count(self) -> None:
        """Count a container or an entry: a hostile file may nest them."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise Broken(f"it has more than {_MOST_PARTS:,} fatbins and entries of device code")

    def _name(self, place: int, header: int, name: int, length: int) -> str:
        if not length or length > _LONGEST_NAME or name + length > header:
            return ""
        return one_line(bytes(self.data[place + name : place + name + length]).decode("utf-8", "replace"))


def _packing(flags: int) -> Packing:
    for bit, packing in ((_ZSTD, Packing.ZSTD), (_LZ4, Packing.LZ4), (_OLD, Packing.OTHER)):
        if flags & bit:
            return packing
    return Packing.NONE
