"""Kernel names from compressed device code, and the templates that they instantiate."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.artifacts import is_empty_cubin, is_empty_ptx, kernel_names_of_cubin, kernel_names_of_ptx
from harness.model import Target
from harness.wheels.entries import Broken, Entry, Kind, Library, Packing, Unit

LARGEST = 256 << 20
"""Largest uncompressed size of a piece of code in bytes; larger ones are not read."""
_MOST = 64 << 30  # bytes of all pieces together
_MOST_UNASKED = 4 << 30  # the same without --kernels
_MOST_NAMES = 2_000_000
_LARGEST_EMPTY = 4096
"""Largest size of a cubin or PTX that may be empty, in bytes: nvcc 11.8 to 13.5 writes 600 to 2,000."""


class NoDecompression(Exception):
    """pyarrow, which decompresses code, is not installed."""


def with_kernels(library: Library, path: Path, units: Iterable[Unit], *, every: bool = True) -> Library:
    """Read the names of the kernels in some of a library's fatbins.

    Parameters
    ----------
    library : Library
        As `read_library` returns it.
    path : Path
        Its file.
    units : iterable of Unit
        The fatbins to read.
    every : bool
        Whether to read all code of a fatbin. Otherwise only its smallest entry is read, and its kernels count for all
        targets of the fatbin.

    Raises
    ------
    Broken
        If code contradicts its headers.
    NoDecompression
        If code is compressed and pyarrow is not installed.
    """
    found: dict[str, set[Target]] = defaultdict(set)
    unread: dict[str, None] = {}
    left = _MOST if every else _MOST_UNASKED
    with path.open("rb") as file:
        for entry, targets in _worth_reading(units, every=every):
            if entry.length > min(LARGEST, left) or entry.size > LARGEST:
                unread[f"{entry.target}: code of {entry.length >> 20} MiB is not read"] = None
                continue
            if entry.packing is Packing.OTHER:
                unread[f"{entry.target}: its compression is unknown"] = None
                continue
            left -= entry.length
            file.seek(entry.place)
            for name in _names(entry, unpack(entry, file.read(entry.size))):
                found[name] |= targets
            if len(found) > _MOST_NAMES:
                raise Broken(f"it has more than {_MOST_NAMES:,} kernels")
    same: dict[frozenset[Target], frozenset[Target]] = {}
    kernels = {name: same.setdefault(each, each) for name, targets in found.items() for each in [frozenset(targets)]}
    return replace(library, kernels=kernels, unread=tuple(unread))


def with_empty_marked(library: Library, path: Path) -> Library:
    """Mark the fatbins whose cubins and PTX have neither functions nor variables.

    Parameters
    ----------
    library : Library
        As `read_library` returns it.
    path : Path
        Its file.

    Raises
    ------
    NoDecompression
        If small code is compressed and pyarrow is not installed.
    """
    with path.open("rb") as file:

        def is_empty(entry: Entry) -> bool:
            file.seek(entry.place)
            try:
                data = unpack(entry, file.read(entry.size))
                return is_empty_ptx(data.decode("utf-8", "replace")) if entry.kind is Kind.PTX else is_empty_cubin(data)
            except (Broken, ValueError):
                return False  # unreadable code counts as code

        units = tuple(
            replace(unit, empty=True) if _may_be_empty(unit) and all(map(is_empty, unit.entries)) else unit
            for unit in library.units
        )
    return replace(library, units=units)


def _may_be_empty(unit: Unit) -> bool:
    # A file that is itself a cubin, PTX or a fatbin exists for its code, whatever the code is.
    return bool(unit.section) and all(
        entry.kind in (Kind.PTX, Kind.SASS) and max(entry.length, entry.size) <= _LARGEST_EMPTY
        for entry in unit.entries
    )


def _worth_reading(units: Iterable[Unit], *, every: bool) -> Iterator[tuple[Entry, frozenset[Target]]]:
    """Yield the entries to read, each with the targets that have its kernels."""
    for unit in units:
        entries = [entry for entry in unit.entries if entry.kind in (Kind.PTX, Kind.SASS)]
        if every:
            yield from ((entry, frozenset({entry.target})) for entry in entries)
        elif entries:
            yield min(entries, key=lambda entry: entry.length), frozenset(entry.target for entry in entries)


def _names(entry: Entry, data: bytes) -> frozenset[str]:
    if entry.kind is Kind.PTX:
        return kernel_names_of_ptx(data.decode("utf-8", "replace"))
    try:
        return kernel_names_of_cubin(data)[1]
    except ValueError as error:
        raise Broken(f"its code for {entry.target} at byte {entry.place} is {error}") from None


def unpack(entry: Entry, data: bytes) -> bytes:
    """Return decompressed code.

    Raises
    ------
    Broken
        If the code is not what its header announces.
    NoDecompression
        If pyarrow is not installed.
    """
    if not entry.packing:
        return data
    try:
        import pyarrow
    except ImportError as error:
        raise NoDecompression from error
    codec: Any = pyarrow.Codec("lz4_raw" if entry.packing is Packing.LZ4 else "zstd")
    try:
        unpacked: bytes = codec.decompress(data, decompressed_size=entry.length, asbytes=True)
    except (OSError, ValueError) as error:
        raise Broken(f"its code for {entry.target} at byte {entry.place} cannot be decompressed") from error
    return unpacked


_COUNT = re.compile(r"\d{1,4}")


def template_of(name: str) -> str:
    """Return a kernel's qualified name without template arguments.

    For example, ``flash::flash_fwd_kernel`` for ``_ZN5flash16flash_fwd_kernelI…``.

    Names follow the Itanium C++ ABI (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling). Any other
    name is returned unchanged.
    """
    if not name.startswith("_Z"):
        return name
    place, parts = 2, []
    nested = name.startswith("N", place)
    if nested:
        place += 1
        place += len(name[place:]) - len(name[place:].lstrip("rVK"))
    if name.startswith("St", place):
        place += 2
        parts.append("std")
    while True:
        if name.startswith("L", place):  # internal linkage
            place += 1
        found = _COUNT.match(name, place)
        if not found or found.end() + int(found[0]) > len(name):
            break
        place = found.end() + int(found[0])
        part = name[found.end() : place]
        parts.append("(anonymous)" if part.startswith("_GLOBAL__N_") else part)
        if not nested:
            break
    return "::".join(parts) or name
