"""``compile_commands.json`` (https://clang.llvm.org/docs/JSONCompilationDatabase.html): the command line of each file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.recorder import INCLUDE, SYSTEM

_LARGEST = 256 << 20
_LARGEST_OPTIONS = 1 << 20

# Options of nvcc (https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/) by use. A value follows "=" or is the next
# word.
_DEFINE, _UNDEFINE = ("-D", "--define-macro"), ("-U", "--undefine-macro")
_STD = ("-std", "--std")
_FILES = ("-optf", "--options-file")
_RELOCATABLE = ("-rdc", "--relocatable-device-code")
_ALL_VALUES = {
    "-ftz": "-ftz", "--ftz": "-ftz", "-prec-div": "-prec-div", "--prec-div": "-prec-div", "-prec-sqrt": "-prec-sqrt",
    "--prec-sqrt": "-prec-sqrt", "-fmad": "-fmad", "--fmad": "-fmad", "-maxrregcount": "-maxrregcount",
    "--maxrregcount": "-maxrregcount", "-Xptxas": "--ptxas-options", "--ptxas-options": "--ptxas-options",
}  # fmt: skip
_PRE_INCLUDE = ("-include", "--pre-include")
_ALL = {
    "-use_fast_math": "--use_fast_math", "--use_fast_math": "--use_fast_math", "-G": "-G", "--device-debug": "-G",
    "-lineinfo": "-lineinfo", "--generate-line-info": "-lineinfo", "-w": "-w", "--disable-warnings": "-w",
    "-dlto": "-dlto", "--dlink-time-opt": "-dlto",
}  # fmt: skip
_NVCC_VALUES = (
    "-Xcompiler", "--compiler-options", "-Xcudafe", "--cudafe-options", "-Werror", "--Werror", "-diag-suppress", "--diag-suppress",
    "-default-stream", "--default-stream",
)  # fmt: skip
_NVCC = re.compile(
    r"-O\w*|-g|--debug|--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda|--?restrict|--?display-error-number|-res-usage"
    r"|--resource-usage|-Wno-deprecated-gpu-targets|--?extra-device-vectorization|--?allow-unsupported-compiler"
)
_HOST = re.compile(r"-(?:f|m|W|pthread|pedantic)\S*")
_OUTPUT_VALUES = (
    "-o",
    "--output-file",
    "-MF",
    "-MT",
    "-MQ",
    "-odir",
    "--output-directory",
    "-x",
    "--x",
    "-ccbin",
    "--compiler-bindir",
    "-t",
    "--threads",
    "-Xfatbin",
    "--fatbin-options",
    "-Xlinker",
    "--linker-options",
)
_TARGET_VALUES = ("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")
_NOTHING = re.compile(
    r"-c|--compile|--?(?:cubin|ptx|fatbin)|-M[DMPG]*|--generate-\S*dependencies\S*|--?forward-unknown-to-host-\S+|--?cudart\S*|-[lL]\S*|--?keep\S*|-v|--verbose|-shared|--cuda-gpu-arch=\S+"
)


@dataclass(frozen=True)
class Unit:
    """The options of a translation unit.

    Parameters
    ----------
    file : Path
        Source file.
    include : tuple of str
        Include directories, absolute.
    system : tuple of str
        Include directories that nvcc searches last, after those of the toolkit (``-isystem``), absolute.
    define : tuple of str
        ``NAME`` or ``NAME=VALUE``.
    std : str
        ``c++17``; empty for the compiler's default.
    rdc : bool
        Whether device code is relocatable.
    flags : tuple of str
        Other options; ``nvcc:-O3`` is for nvcc only.
    dropped : tuple of str
        Omitted options: those that cumatrix sets itself (the target, the output) and unknown ones.
    targets : tuple of str
        Targets of the build, as in its command: ``sm_80``, ``compute_90``.
    output : str
        Object file; empty if unknown.
    """

    file: Path
    include: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    define: tuple[str, ...] = ()
    std: str = ""
    rdc: bool = False
    flags: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    output: str = ""


@dataclass
class _Reading:
    include: list[str] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    define: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    std: str = ""
    rdc: bool = False


def units_of(path: Path) -> list[Unit]:
    """Return every unit of CUDA C++ (``.cu``) in a build, in the order of the database.

    A file that the build compiles twice has two units.

    Raises
    ------
    UsageError
        If the file is no compilation database.
    """
    shown = os.path.relpath(path)
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{shown} is no file")  # a pipe or a device may have no end
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{shown} is larger than {_LARGEST >> 20} MB")
        entries = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{shown} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{shown} is no JSON: {str(error)[:100]}") from None
    if not isinstance(entries, list):
        raise UsageError(f"{shown} is no compilation database: it is a list of commands")
    return [unit for index, entry in enumerate(entries) if (unit := _unit(entry, f"{shown}, entry {index + 1}"))]


def unit_of(path: Path, file: Path) -> Unit:
    """Return the unit of one file; raise `UsageError` if the build does not compile the file."""
    units = units_of(path)
    wanted = file.resolve()
    for unit in units:
        if unit.file.resolve() == wanted:
            return unit
    there = ", ".join(sorted({unit.file.name for unit in units})[:5])
    raise UsageError(
        f"{os.path.relpath(path)} has no command for {os.path.relpath(file)}; it compiles {there or 'no .cu file'}"
    )


def read_command(argv: Sequence[str], folder: Path, file: Path) -> Unit:
    """Parse a command line that starts with the compiler."""
    found, words = _Reading(), list(argv[1:])
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")

        def take(value: str = value, equals: str = equals) -> str:
            return value if equals else words.pop(0) if words else ""

        short = next((prefix for prefix in ("-I", "-D", "-U") if word.startswith(prefix) and word != prefix), "")
        if short == "-I" or name in INCLUDE:
            found.include.append(os.path.normpath(folder / (word[2:] if short else take())))
        elif name in SYSTEM:
            found.system.append(os.path.normpath(folder / take()))
        elif name in _PRE_INCLUDE:
            text = take()
            found.flags.append(f"--pre-include={folder / text if (folder / text).is_file() else text}")
        elif short == "-D" or name in _DEFINE:
            found.define.append(word[2:] if short else take())
        elif short == "-U" or name in _UNDEFINE:
            found.flags.append(f"-U{word[2:] if short else take()}")
        elif name in _FILES:
            # CMake writes the include directories of CUDA C++ into an options file.
            for listed in take().split(","):
                inner = _words_in(folder / listed)
                words[:0] = inner or []
                found.dropped += [] if inner is not None else [f"{name} {listed}"]
        elif name in _STD:
            found.std = take()
        elif name in _RELOCATABLE:
            found.rdc = (
                value if equals else words.pop(0) if words and words[0] in ("true", "false") else "true"
            ) == "true"
        elif word in ("-dc", "--device-c"):
            found.rdc = True
        elif name in _ALL_VALUES:
            found.flags.append(f"{_ALL_VALUES[name]}={take()}")
        elif word in _ALL:
            found.flags.append(_ALL[word])
        elif name in _NVCC_VALUES:
            found.flags.append(f"nvcc:{name}={take()}")
        elif _NVCC.fullmatch(word):
            found.flags.append(f"nvcc:{word}")
        elif name in _TARGET_VALUES:
            text = take()
            found.dropped.append(f"{name} {text}")
            codes = text.partition("code=")[2] or text
            found.targets += re.findall(r"(?:sm|compute)_\d+[af]?", codes)
        elif name in _OUTPUT_VALUES:
            take()
        elif _NOTHING.fullmatch(word):
            continue
        elif _HOST.fullmatch(word):
            found.flags.append(f"nvcc:-Xcompiler={word}")
        elif not word.startswith("-"):
            if os.path.realpath(folder / word) != os.path.realpath(file):
                found.dropped.append(word)
        elif os.path.basename(argv[0]) == "nvcc":
            found.flags.append(f"nvcc:{word}")
        else:
            found.dropped.append(word)
    return Unit(
        file, tuple(dict.fromkeys(found.include)), tuple(dict.fromkeys(found.system)), tuple(dict.fromkeys(found.define)),
        found.std, found.rdc, tuple(dict.fromkeys(found.flags)), tuple(dict.fromkeys(found.dropped)),
        tuple(dict.fromkeys(found.targets)),
    )  # fmt: skip


def _words_in(path: Path) -> list[str] | None:
    """Return the words of an options file; None if it is missing or unreadable."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_OPTIONS:
            return None
        return [word for word in shlex.split(path.read_text("utf-8")) if word.split("=")[0] not in _FILES]
    except (OSError, ValueError):
        return None


def _unit(entry: Any, where: str) -> Unit | None:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("file"), str)
        or not isinstance(entry.get("directory", "."), str)
    ):
        raise UsageError(f"{where}: has no file and directory")
    folder = Path(entry.get("directory", ".")).absolute()
    file = Path(os.path.normpath(folder / entry["file"]))
    argv = entry.get("arguments")
    if argv is None:
        try:
            argv = shlex.split(entry.get("command", ""))
        except (ValueError, AttributeError) as error:
            raise UsageError(f"{where}: its command cannot be read: {error}") from None
    named = argv if isinstance(argv, list) else []
    is_named = any(pair in (("-x", "cu"), ("--x", "cu")) for pair in pairwise(named)) or "-x=cu" in named
    if file.suffix.lower() not in (".cu", ".cup") and not is_named:
        return None
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise UsageError(f"{where}: has neither arguments nor a command")
    if not all(map(_is_encodable, (str(file), *argv))):
        raise UsageError(f"{where}: has a NUL or half a character in it, which no command line can have")
    output = entry.get("output")
    return replace(read_command(argv, folder, file), output=output if isinstance(output, str) else "")


def _is_encodable(word: str) -> bool:
    try:
        return b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        return False
