"""nvJitLink (https://docs.nvidia.com/cuda/nvjitlink/): links relocatable code and libcudadevrt to a cubin without a driver."""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported

INPUT_CUBIN, INPUT_PTX, INPUT_LTOIR, INPUT_FATBIN, INPUT_OBJECT, INPUT_LIBRARY = 1, 2, 3, 4, 5, 6
_KINDS = {"object": INPUT_CUBIN, "cubin": INPUT_CUBIN, "ptx": INPUT_PTX, "ltoir": INPUT_LTOIR}

_RELEASES = [f"_{major}_{minor}" for major in range(19, 11, -1) for minor in range(15, -1, -1)]
"""Suffixes of entry points, the newest release first; nvJitLink came with CUDA 12.0."""

NOT_LINKED_ALONE = "not linked: with -dc (--device-c) a file is one of several; -rdc=true links it by itself"


class LinkError(Exception):
    """nvJitLink refused; the message is its log."""


class Linker:
    """The nvJitLink of one toolkit."""

    def __init__(self, library: Path) -> None:
        self.lib = ctypes.CDLL(str(library))
        # Entry points have the release of their introduction as a suffix, and a library keeps older ones. They are
        # looked up by name, because scanning the library for them takes five times as long as linking: it has 90 MB.
        self.suffix = next((each for each in _RELEASES if hasattr(self.lib, f"__nvJitLinkCreate{each}")), "")
        self.version = self.suffix.strip("_").replace("_", ".")

    def link(self, options: Sequence[str], inputs: Sequence[tuple[int, bytes | Path]]) -> tuple[bytes, str]:
        """Link inputs, each bytes in memory or a file; return the cubin and the linker's remarks.

        Raises
        ------
        LinkError
            If nvJitLink refuses.
        """
        argv = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        handle = ctypes.c_void_p()
        self._check(handle, "Create", ctypes.byref(handle), len(options), argv)
        try:
            for kind, item in inputs:
                if isinstance(item, Path):
                    self._check(handle, "AddFile", handle, kind, str(item).encode())
                else:
                    data = item.rstrip(b"\0") + b"\0" if kind == INPUT_PTX else item
                    self._check(handle, "AddData", handle, kind, data, ctypes.c_size_t(len(data)), b"input")
            self._check(handle, "Complete", handle)
            size = ctypes.c_size_t()
            self._check(handle, "GetLinkedCubinSize", handle, ctypes.byref(size))
            cubin = ctypes.create_string_buffer(size.value)
            self._check(handle, "GetLinkedCubin", handle, cubin)
            return cubin.raw, self._log(handle, "Info")
        finally:
            if handle:
                self._function("Destroy")(ctypes.byref(handle))

    def _function(self, name: str) -> ctypes._CFuncPtr:  # type: ignore[name-defined]
        try:
            return getattr(self.lib, f"__nvJitLink{name}{self.suffix}")
        except AttributeError:
            return getattr(self.lib, f"nvJitLink{name}")

    def _check(self, handle: ctypes.c_void_p, name: str, *arguments: object) -> None:
        code = self._function(name)(*arguments)
        if code:
            raise LinkError((self._log(handle, "Error") if handle else "") or f"error: nvJitLink{name} returned {code}")

    def _log(self, handle: ctypes.c_void_p, which: str) -> str:
        size = ctypes.c_size_t()
        if self._function(f"Get{which}LogSize")(handle, ctypes.byref(size)) or not size.value:
            return ""
        text = ctypes.create_string_buffer(size.value)
        self._function(f"Get{which}Log")(handle, text)
        return text.value.decode(errors="replace")


def parts(setup: Setup) -> tuple[Path, Path] | str:
    """Return nvJitLink and libcudadevrt.a of the toolkit, or the reason why it cannot link relocatable code."""
    library, runtime = setup.library("libnvJitLink"), setup.home / "lib64" / "libcudadevrt.a"
    if library is None:
        return f"CUDA {setup.release} has no nvJitLink (it came with 12.0)"
    if not runtime.is_file():
        return f"PyPI's wheels of CUDA {setup.release} have no libcudadevrt.a"
    return library, runtime


def of_linker(setup: Setup, job: Job) -> Setup:
    """Return the toolkit that links: another one if the job names it."""
    return replace(setup, home=job.linker.home, release=job.linker.release) if job.linker else setup


def check_lto(setup: Setup, job: Job) -> None:
    """Raise if link-time code generation is impossible: for a virtual target, or without a linker."""
    if job.virtual:
        raise Unsupported("link-time optimization (-dlto) makes code for a real architecture")
    setup = of_linker(setup, job)
    if setup.library("libnvJitLink") is None:
        raise Unavailable(f"-dlto needs a linker, and CUDA {setup.release} has no nvJitLink (it came with 12.0)")


def link_with_runtime(setup: Setup, job: Job) -> None:
    """Link the job's relocatable artifact with libcudadevrt, as stage ``link``, with nvJitLink from `of_linker`.

    With ``-dc``, the stage is skipped with a note. Without libcudadevrt, code that calls it stays unlinked, with a
    note; other code is linked. Any other undefined reference is a refusal.

    Raises
    ------
    Rejected
        If nvJitLink refuses.
    """
    assert job.artifact is not None
    if job.one_of_several:
        job.notes.append(NOT_LINKED_ALONE)
        return
    setup = of_linker(setup, job)
    found, plain = parts(setup), job.artifact.format == "ptx"
    library = setup.library("libnvJitLink")
    if library is None and not job.lto and not job.linker:
        job.notes.append(f"not linked: {found}")
        return
    if library is None:
        raise Unavailable(str(found))
    made = job.artifact.parts or [job.artifact]
    inputs = [(_KINDS[each.format], Path(each.path).read_bytes()) for each in made]
    if (
        isinstance(found, str)
        and job.artifact.format == "object"
        and (names := runtime_calls([data for _, data in inputs]))
    ):
        job.notes.append(without_runtime(found, names))
        return
    linker, runtime = Linker(library), [] if plain or isinstance(found, str) else [found[1]]
    job.enter("link")
    options = [f"-arch=sm_{job.arch}", *(["-lto"] if job.lto else [])]
    job.command.append(" ".join(["nvJitLink", *options, *(each.path for each in made), *map(str, runtime)]))
    job.observed["nvjitlink"] = linker.version
    try:
        with heard(job):
            cubin, remarks = linker.link(options, [*inputs, *((INPUT_LIBRARY, path) for path in runtime)])
    except LinkError as error:
        job.say(str(error))
        raise Rejected("nvJitLink refused", stage="link") from None
    if isinstance(found, str) and not plain:
        job.notes.append(f"linked without libcudadevrt, which it does not call: {found}")
    job.say(remarks)
    job.keep(cubin, "cubin")


@contextmanager
def heard(job: Job) -> Iterator[None]:
    """Redirect standard error to the job's log: nvJitLink 12.0 to 12.8 prints errors there that its own log lacks."""
    before, log = os.dup(2), os.open(job.scratch / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(log, 2)
    os.close(log)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


_SHOWN = 3
_RUNTIME = re.compile(r"_*cuda[A-Z]\w*")
_HEADER = struct.Struct("<40xQ10xHHH")  # e_shoff, e_shentsize, e_shnum, e_shstrndx
_SECTION = struct.Struct("<4xI16xQQI20x")  # sh_type, sh_offset, sh_size, sh_link
_SYMBOL = struct.Struct("<I2xH16x")  # st_name, st_shndx
_SYMTAB, _UNDEFINED = 2, 0


def without_runtime(why: str, calls: Sequence[str]) -> str:
    """Return the note on unlinked code: why libcudadevrt is missing, and which of its functions the code calls."""
    more = f" and {len(calls) - _SHOWN} more of it" if len(calls) > _SHOWN else ""
    return f"not linked: {why}, and the program calls {', '.join(calls[:_SHOWN])}{more}"


def runtime_calls(objects: Sequence[bytes]) -> list[str]:
    """Return libcudadevrt's functions that relocatable cubins call, by name: their order in symbol tables may change."""
    names = [name for data in objects for name, section in _symbols(data) if section == _UNDEFINED]
    return sorted({name for name in names if _RUNTIME.fullmatch(name)})


def _symbols(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the names of an ELF file's symbols, each with the number of its section."""
    place, size, count, _ = _HEADER.unpack_from(data)
    sections = [_SECTION.unpack_from(data, place + number * size) for number in range(count)]
    for kind, offset, length, link in sections:
        if kind == _SYMTAB:
            names = sections[link][1]
            for start in range(offset, offset + length, _SYMBOL.size):
                name, section = _SYMBOL.unpack_from(data, start)
                yield data[names + name : data.index(b"\0", names + name)].decode(errors="replace"), section
