"""Sources of device code: a file, a wheel, or a folder of installed packages."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO

from harness.diagnostics import one_line
from harness.errors import NothingToRun, UsageError
from harness.model import Target
from harness.model.gpus import Gpu
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.wheels.binary import HEAD, is_binary, read_library
from harness.wheels.coverage import uneven
from harness.wheels.entries import Broken, Library
from harness.wheels.kernels import NoDecompression, with_empty_marked, with_kernels

_PROFILER = re.compile(r"lib(cupti|checkpoint|nvperf|pcsamplingutil)\w*[-.]")
"""CUPTI's libraries, which packages bundle; programs run without them."""
_FOLDED = 24
"""Minimum number of a package's files without host code that count as one library: the package selects among them."""
_ARCHIVES = (".whl", ".zip")
_MOST_FILES = 500_000
_LARGEST = 16 << 30  # bytes of one file in a wheel
_MOST_BYTES = 64 << 30  # bytes of all unpacked files
_MOST_RATIO = 1100  # deflate expands one byte to at most 1032
_TEXTS = frozenset(
    ".py .pyc .pyi .txt .h .hpp .cuh .cu .c .cpp .json .md .html .js .css .png .svg .csv .toml .yaml .rst".split()
)


@dataclass(frozen=True)
class Found:
    """The device code of a source that the user names.

    Parameters
    ----------
    name : str
        Its name.
    sha256 : str
        Hash of the file; empty for a folder.
    libraries : tuple of Library
        Files with device code, sorted by name.
    without_code : tuple of str
        Files whose fatbins have neither functions nor variables.
    profiler : tuple of str
        Libraries of NVIDIA's profiler, which are not part of the package's code.
    others : tuple of str
        Files that may contain device code but are not read: those for Windows.
    hints : tuple of str
        What the result lacks, one sentence each.
    """

    name: str
    sha256: str
    libraries: tuple[Library, ...]
    without_code: tuple[str, ...] = ()
    profiler: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


def read_source(path: Path, shown: str = "", *, gpus: Sequence[Gpu] = (), every_name: bool = False) -> Found:
    """Read the device code of a file or folder without executing any of it.

    Parameters
    ----------
    path : Path
        A wheel, a library, an archive, an executable, a fatbin, a cubin, PTX, or a folder.
    shown : str
        The name for messages; the path by default.
    gpus : sequence of Gpu
        GPUs to read kernel names for, in fatbins that do not run on them if other fatbins of the library do.
    every_name : bool
        Whether to read the names of all kernels.

    Raises
    ------
    UsageError
        If the source cannot be read, or violates its format.
    """
    shown = shown or str(path)
    collected = _Collected(shown, gpus, every_name=every_name)
    sha256 = ""
    try:
        if path.is_dir():
            collected.folder(path)
        elif not path.is_file():
            raise UsageError(f"{shown} is neither a file nor a folder")  # a pipe or a device may never end
        else:
            sha256 = hash_of(path)
            if path.suffix.lower() in _ARCHIVES:
                collected.wheel(path)
            else:
                collected.file(path, path.name)
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror or error}") from None
    return collected.found(sha256)


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _Collected:
    """Collects libraries."""

    def __init__(self, shown: str, gpus: Sequence[Gpu], *, every_name: bool) -> None:
        self.shown, self.gpus, self.every_name = shown, gpus, every_name
        self.libraries: list[Library] = []
        self.without_code: list[str] = []
        self.profiler: list[str] = []
        self.others: list[str] = []
        self.hints: dict[str, None] = {}

    def found(self, sha256: str) -> Found:
        """Return everything collected."""
        libraries = _folded(sorted(self.libraries, key=lambda library: library.name))
        return Found(
            self.shown, sha256, tuple(libraries),
            without_code=tuple(sorted(self.without_code)), profiler=tuple(sorted(self.profiler)), others=tuple(sorted(self.others)), hints=tuple(self.hints),
        )  # fmt: skip

    def file(self, path: Path, name: str) -> None:
        """Read one file."""
        try:
            library = self._decompressed(lambda library: with_empty_marked(library, path), read_library(path, name))
            units = library.loaded if self.every_name else uneven(library, self.gpus)
            if units:
                library = self._decompressed(
                    lambda library: with_kernels(library, path, units, every=self.every_name), library
                )
        except Broken as error:
            where = self.shown if name == Path(self.shown).name else f"{self.shown}: {name}"
            raise UsageError(f"{one_line(where)}: {error}") from None
        if library.with_code:
            self.libraries.append(library)
        elif library.units:
            self.without_code.append(one_line(name))

    def _decompressed(self, read: Callable[[Library], Library], library: Library) -> Library:
        try:
            return read(library)
        except NoDecompression:
            from harness.errors import install_command  # reads the installed distributions

            need = "kernels are read only with pyarrow, which decompresses them; without it, a fatbin without kernels counts as one with kernels"
            self.hints[f"{need}: {install_command('wheels')}"] = None
            return library

    def folder(self, root: Path) -> None:
        """Read the files of a folder without following links."""
        count = 0
        for place, folders, files in os.walk(root):
            folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
            for file in sorted(files):
                count += 1
                if count > _MOST_FILES:
                    raise UsageError(f"{self.shown} has more than {_MOST_FILES:,} files: name a folder in it")
                path = Path(place, file)
                if path.suffix.lower() in _TEXTS or path.is_symlink() or not path.is_file():
                    continue
                with path.open("rb") as opened:
                    head = opened.read(HEAD)
                self._one(str(path.relative_to(root)), head, partial(self.file, path))

    def _one(self, name: str, head: bytes, read: Callable[[str], None]) -> bool:
        """Read a file that can have device code, and return whether it was read."""
        if is_binary(name, head):
            if _PROFILER.match(Path(name).name):
                self.profiler.append(one_line(name))
                return False
            read(name)
            return True
        if head.startswith(b"MZ") and name.lower().endswith((".dll", ".pyd", ".exe")):
            self.others.append(one_line(name))
        return False

    def wheel(self, path: Path) -> None:
        """Read the files of a wheel, each unpacked into a temporary folder and removed afterwards."""
        try:
            with zipfile.ZipFile(path) as archive, HeldFolder(temporary_folder(), TEMPORARY) as folder:
                left = _MOST_BYTES
                members = archive.infolist()
                if len(members) > _MOST_FILES:
                    raise UsageError(f"{self.shown} has more than {_MOST_FILES:,} files")
                for member in members:
                    if member.is_dir() or Path(member.filename).suffix.lower() in _TEXTS:
                        continue
                    left = self._member(archive, member, folder / "member", left)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise UsageError(f"{self.shown} is no wheel that can be read: {one_line(str(error), 200)}") from None

    def _member(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path, left: int) -> int:
        with archive.open(member) as opened:
            head = opened.read(HEAD)

        def read(name: str) -> None:
            size = member.file_size
            if size > min(_LARGEST, left) or size > max(member.compress_size, 1) * _MOST_RATIO:
                raise UsageError(f"{self.shown}: {one_line(name)} has {size} bytes, more than cumatrix unpacks")
            with archive.open(member) as packed, place.open("wb") as plain:
                _copy(packed, plain, size)
            self.file(place, name)
            place.unlink()

        return left - member.file_size if self._one(member.filename, head, read) else left


def _folded(libraries: Sequence[Library]) -> list[Library]:
    """Merge the many cubins, fatbins and PTX files of one package into one library."""
    packages: dict[str, list[Library]] = {}
    for library in libraries:
        plain = all(not unit.section and not unit.member for unit in library.units)
        packages.setdefault(library.name.partition("/")[0] if plain else library.name, []).append(library)
    found = []
    for package, files in packages.items():
        if len(files) < _FOLDED:
            found += files
            continue
        kernels: dict[str, frozenset[Target]] = {}
        for file in files:
            for name, targets in file.kernels.items():
                kernels[name] = kernels.get(name, frozenset()) | targets
        found.append(
            Library(
                f"{package} ({len(files):,} files)", sum(file.size for file in files),
                tuple(unit for file in files for unit in file.units), kernels,
                tuple(dict.fromkeys(why for file in files for why in file.unread)),
            )
        )  # fmt: skip
    return found


def _copy(packed: IO[bytes], plain: BinaryIO, size: int) -> None:
    """Copy a member, up to its announced size."""
    shutil.copyfileobj(packed, plain, 1 << 20)
    if plain.tell() != size:
        raise zipfile.BadZipFile("a file has another size than its entry says")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def needs_code(found: Found) -> None:
    """Reject a source without device code.

    Raises
    ------
    NothingToRun
        If the source has no device code.
    """
    if not found.libraries:
        windows = f"; {len(found.others)} files for Windows are not read" if found.others else ""
        empty = f": fatbins without kernels in {', '.join(found.without_code[:3])}" if found.without_code else ""
        tools = (
            f"; NVIDIA's profiler ({', '.join(map(_base, found.profiler[:3]))}) is not read" if found.profiler else ""
        )
        raise NothingToRun(f"{found.name} has no device code of NVIDIA GPUs{empty}{tools}{windows}")
