"""ELF files of 64 bits, little-endian: sections and symbols.

The layout follows the System V ABI (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html). This module parses it with `struct`
alone: cumatrix reads every built cell back, and a general library takes ten times as long, while sixteen compilers wait
(``benchmarks/peers.py``).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass

ET_REL, ET_EXEC = 1, 2
STT_FUNC = 2

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NO_BITS = 8
_MOST_NAMES = (
    64 << 20
)  # bytes of all names together: one name may have a megabyte, and many names may begin within another
_MOST_SECTIONS = 1 << 18


@dataclass(frozen=True)
class Section:
    """A section.

    Parameters
    ----------
    name : str
        Its name.
    size : int
        Size in bytes, even if the file stores none of them (``SHT_NOBITS``).
    data : memoryview
        The bytes in the file, without a copy: the parts of a hostile file may overlap.
    link : int
        Index of an associated section: for symbols, the section with their names.
    place : int
        Offset of its data in the file.
    address : int
        Address in a program's memory.
    """

    name: str
    size: int
    data: memoryview
    link: int
    place: int = 0
    address: int = 0


@dataclass(frozen=True)
class Symbol:
    """A symbol: its name, and the fields ``st_info`` (type in the lowest four bits) and ``st_other``."""

    name: str
    info: int
    other: int

    @property
    def type(self) -> int:
        """One of ``STT_*``."""
        return self.info & 0xF


class Elf:
    """An ELF file.

    Parameters
    ----------
    data : bytes, memoryview or mmap
        The file.

    Attributes
    ----------
    size : int
        Size of the file in bytes.
    type, machine, flags, abi : int
        ``e_type``, ``e_machine``, ``e_flags`` and ``EI_ABIVERSION``.
    sections : dict of str to Section
        Sections by name; if several share a name, the last one.
    all_sections : list of Section
        Sections in the order of the file's section table.

    Raises
    ------
    ValueError
        If the file is not 64-bit little-endian ELF, or its headers are invalid.
    """

    def __init__(self, data: bytes | memoryview | mmap.mmap) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or len(data) < HEADER.size:
            raise ValueError("no ELF file of 64 bits, little-endian")
        ident, self.type, self.machine, _, _, _, place, self.flags, _, _, _, size, count, names = HEADER.unpack_from(
            data
        )
        self.abi, self.size = ident[8], len(data)
        headers = self._headers(data, place, size, count) if place else []
        if (
            headers and count == 0
        ):  # more than the field can hold: the first section holds the count, and the index of the names
            headers = self._headers(data, place, size, headers[0][5])
            names = headers[0][6]
        view = memoryview(data)
        texts = _Names(_data_of(view, headers[names]) if names < len(headers) else view[:0], self.size)
        self.all_sections = [
            Section(
                texts.at(head[0]),
                head[5],
                view[:0] if head[1] == _NO_BITS else _data_of(view, head),
                head[6],
                head[4],
                head[3],
            )
            for head in headers
        ]
        self.sections = {section.name: section for section in self.all_sections}

    def symbols(self) -> Iterator[Symbol]:
        """Yield the symbols of ``.symtab`` in order.

        Raises
        ------
        ValueError
            If their names cannot be read.
        """
        table = self.sections.get(".symtab")
        if table is None:
            return
        texts = _Names(
            self.all_sections[table.link].data if table.link < len(self.all_sections) else table.data[:0], self.size
        )
        whole = len(table.data) // _SYMBOL.size * _SYMBOL.size
        for name, info, other, *_ in _SYMBOL.iter_unpack(table.data[:whole]):
            yield Symbol(texts.at(name), info, other)

    @staticmethod
    def _headers(data: bytes | memoryview | mmap.mmap, place: int, size: int, count: int) -> list[tuple[int, ...]]:
        if count > _MOST_SECTIONS:
            raise ValueError(f"it has {count} sections")
        if size != _SECTION.size or place + max(count, 1) * size > len(data):
            raise ValueError("its table of sections is cut off")
        return [_SECTION.unpack_from(data, place + number * size) for number in range(max(count, 1))]


def _data_of(data: memoryview, head: tuple[int, ...]) -> memoryview:
    # Shared memory in relocatable cubins has an NVIDIA-specific type, 0x7000000A, and no data: its range is beyond the end of the file.
    _, _, _, _, place, size, *_ = head
    return data[place : place + size]


class _Names:
    """Names in a string section.

    Names may share a suffix and its bytes. Their total length is limited by the file's size.
    """

    def __init__(self, texts: memoryview, size: int) -> None:
        self.texts = bytes(texts[:_MOST_NAMES])
        self._left = min(_MOST_NAMES, 4 * size + (1 << 16))

    def at(self, place: int) -> str:
        if not self.texts:
            return ""
        end = self.texts.find(b"\0", place, place + self._left)
        if end < 0:
            raise ValueError("its names are not to be read: one has no end, or they are too long together")
        self._left -= end - place
        return self.texts[place:end].decode()
