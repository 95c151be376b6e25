"""Files with device code (ELF, archives, fatbins, cubins and PTX), recognized by their first bytes."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from harness.artifacts import EM_CUDA, header_of_ptx, kernel_names_of_cubin
from harness.artifacts.elf import Elf, Section
from harness.diagnostics import one_line
from harness.wheels.entries import (
    LINK_VERSION,
    LINKED,
    MAGIC,
    RELOCATABLE,
    Broken,
    Buffer,
    Entry,
    Kind,
    Library,
    Reader,
    Unit,
)

_ELF, _ARCHIVE, _THIN = b"\x7fELF", b"!<arch>\n", b"!<thin>\n"
HEAD = 8
"""Number of bytes that identify a file format."""
_LARGEST_IMAGE = 256 << 20
"""Largest cubin or PTX, in bytes."""
_PIECE = 8 << 20
_MOST_MEMBERS = 200_000
_MOST_STARTS = 1_000_000
_MEMBER = struct.Struct("16s12s6s6s8s10s2s")


def is_binary(name: str, head: bytes) -> bool:
    """Return whether the name or the first bytes of a file allow device code in it."""
    return head.startswith((_ELF, _ARCHIVE, _THIN, MAGIC)) or name.lower().endswith(".ptx")


def read_library(path: Path, name: str) -> Library:
    """Read the device code of a file, without the names of its kernels.

    Parameters
    ----------
    path : Path
        The file, which must not change while it is read.
    name : str
        The name for messages: its path in a wheel.

    Raises
    ------
    Broken
        If the file violates its format.
    """
    size = path.stat().st_size
    if not size:
        return Library(name, 0)
    with path.open("rb") as file:
        # Not closed: views of the mapping may outlive this function. It is freed with the last view.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Library(name, size, tuple(_units(data, name)))


def _units(data: mmap.mmap, name: str) -> Iterator[Unit]:
    head = data[:HEAD]
    if head.startswith(_THIN):
        raise Broken("it is a thin archive, which names its members and has none")
    if head.startswith(_ARCHIVE):
        yield from _of_archive(data)
    elif head.startswith(MAGIC):
        yield from Reader(data).section(0, len(data), "")
    elif head.startswith(_ELF):
        yield from _of_elf(data, 0, "")
    elif name.lower().endswith(".ptx"):
        yield _of_ptx(data)
    else:
        raise Broken("it is no ELF file, archive, fatbin, cubin or PTX")


def _of_elf(data: Buffer, base: int, member: str) -> Iterator[Unit]:
    if bytes(data[4:6]) in (b"\x01\x01", b"\x01\x02", b"\x02\x02"):
        return  # 32-bit or big-endian, which CUDA no longer generates
    try:
        elf = Elf(data)
    except (ValueError, struct.error) as error:
        raise Broken(f"not read: {error}") from None
    if elf.machine == EM_CUDA:
        yield _of_cubin(bytes(_limited(data)), base, member)
        return
    reader = Reader(data, base, member)
    own = [section for section in elf.all_sections if section.name in (LINKED, RELOCATABLE)]
    segment = elf.sections.get(".nvFatBinSegment")
    wrappers = reader.segment(segment.data) if segment else []
    linked = [address for version, address in wrappers if version == LINK_VERSION]
    behind = 0
    for section in sorted(own, key=lambda each: each.place):
        if section.size != len(section.data):
            raise Broken(f"its section {section.name} is cut off")
        if section.place < behind:
            raise Broken(f"its sections {LINKED} and {RELOCATABLE} overlap")
        behind = section.place + section.size
        units = list(reader.section(section.place, section.place + section.size, section.name))
        yield from (_marked(units, section, base, linked) if section.name == LINKED and linked else units)
    yield from _elsewhere(reader, elf, {section.place for section in own})


def _marked(units: Sequence[Unit], section: Section, base: int, linked: Sequence[int]) -> Iterator[Unit]:
    """Mark the fatbins that nvlink wrote, by their addresses; relocations may hold the addresses instead."""
    places, whole = set(linked), all(linked)
    for unit in units:
        known: bool | None = section.address + unit.place - base - section.place in places
        if not whole:
            known = True if len(linked) == len(units) else None
        yield replace(unit, linked=known)


def _elsewhere(reader: Reader, elf: Elf, known: set[int]) -> Iterator[Unit]:
    """Yield the fatbins in other sections with data; the program passes them to the driver itself."""
    behind, starts, search = 0, 0, _Search(reader)  # sections of a hostile file may overlap
    for section in sorted(elf.all_sections, key=lambda each: each.place):
        if section.place in known or not section.data or section.name.startswith(".text"):
            continue
        place, end = max(section.place, behind), section.place + len(section.data)
        behind = max(behind, end)
        while (place := search.next(place, end)) >= 0:
            starts += 1
            if starts > _MOST_STARTS:
                raise Broken(f"it has the magic number of a fatbin more than {_MOST_STARTS:,} times")
            unit = reader.container(place, end, section.name)
            if unit:
                yield unit
            # Skip the fatbin's code, so that the search takes linear time.
            last = max((entry.place + entry.size - reader.base for entry in unit.entries), default=0) if unit else 0
            place = max(place + len(MAGIC), last)


class _Search:
    """Finds the magic number in a file.

    The search copies nothing, takes linear time, and drops the pages that it has read.
    """

    def __init__(self, reader: Reader) -> None:
        data = reader.data
        whole = data.obj if isinstance(data, memoryview) else data
        assert isinstance(whole, mmap.mmap)
        self._whole, self._base, self._read = whole, reader.base if isinstance(data, memoryview) else 0, 0

    def next(self, place: int, end: int) -> int:
        """Return the next match between two offsets, or -1."""
        while place < end:
            last = min(place + _PIECE, end)
            found = self._whole.find(MAGIC, self._base + place, self._base + last)
            reached = found if found >= 0 else self._base + last
            if reached - self._read > _PIECE:
                self._read = reached
                self._whole.madvise(mmap.MADV_DONTNEED)
            if found >= 0:
                return found - self._base
            if last == end:
                break
            place = last - len(MAGIC) + 1
        return -1


def _of_cubin(data: bytes, base: int, member: str) -> Unit:
    try:
        target, _ = kernel_names_of_cubin(data)
    except ValueError as error:
        raise Broken(str(error)) from None
    return Unit((Entry(Kind.SASS, target, (0, 0), base, len(data), length=len(data)),), "", member)


def _of_ptx(data: mmap.mmap) -> Unit:
    text = _limited(data).decode("utf-8", "replace")
    try:
        target, isa = header_of_ptx(text)
    except ValueError as error:
        raise Broken(str(error)) from None
    return Unit((Entry(Kind.PTX, target, isa, 0, len(data), length=len(data)),))


def _limited(data: Buffer) -> bytes:
    if len(data) > _LARGEST_IMAGE:
        raise Broken(f"it has more than {_LARGEST_IMAGE >> 20} MiB, which no cubin and no PTX is read with")
    return bytes(data[:])


def _of_archive(data: mmap.mmap) -> Iterator[Unit]:
    """Yield the fatbins of the members that are ELF files.

    The GNU and BSD variants are supported (https://en.wikipedia.org/wiki/Ar_(Unix)).
    """
    view, names, place = memoryview(data), b"", len(_ARCHIVE)
    for _ in range(_MOST_MEMBERS):
        if place + _MEMBER.size > len(data):
            return
        raw, *_, size_text, end = _MEMBER.unpack_from(data, place)
        try:
            size = int(size_text)
        except ValueError:
            size = -1
        start = place + _MEMBER.size
        if end != b"`\n" or size < 0 or start + size > len(data):
            raise Broken(f"the member of the archive at byte {place} is cut off")
        label = raw.rstrip()
        if label == b"//":
            names = bytes(view[start : min(start + size, start + (64 << 20))])
        elif label not in (b"/", b"/SYM64/"):
            name, skipped = _member_name(label, names, view[start : start + size])
            member = view[start + skipped : start + size]
            if member[: len(_ELF)] == _ELF:
                yield from _of_elf(member, start + skipped, name)
        place = start + size + size % 2
    raise Broken(f"the archive has more than {_MOST_MEMBERS:,} members")


def _member_name(label: bytes, names: bytes, data: memoryview) -> tuple[str, int]:
    """Return a member's name, and how many bytes of its data hold that name."""
    if label.startswith(b"#1/") and label[3:].isdigit():
        length = int(label[3:])
        if length > min(len(data), 4096):
            raise Broken("the name of a member of the archive is cut off")
        raw = bytes(data[:length]).rstrip(b"\0")
    elif label.startswith(b"/") and label[1:].isdigit():
        length, place = 0, int(label[1:])
        raw = names[place : place + 4096].split(b"\n", 1)[0].rstrip(b"/")
    else:
        length, raw = 0, label.rstrip(b"/")
    return one_line(raw.decode("utf-8", "replace")), length
