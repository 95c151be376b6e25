"""The axis of host compilers: what ``--host-compiler`` and ``host_compilers`` of a case name, and what of it this machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from harness.backends import HOST_COMPILERS
from harness.diagnostics import hint
from harness.errors import UsageError
from harness.model import Case, HostCompiler
from harness.model.host_compiler import NAME, named, told_version
from harness.protocol import process_output

_PACKAGES = {"gcc": "g++-{}", "clang": "clang-{}"}
_OWN_NAME = re.compile(r"[a-z][a-z0-9.+-]{0,39}")
_SECONDS = 20


class HostCompilers:
    """Those that the cells of nvcc are for.

    Parameters
    ----------
    chosen : sequence of HostCompiler
        What ``--host-compiler`` names: for every case, in the place of what the case names.
    """

    def __init__(self, chosen: Sequence[HostCompiler] = ()) -> None:
        self.chosen = tuple(chosen)

    def of(self, case: Case) -> tuple[HostCompiler, ...]:
        """Those of one case: without ``--host-compiler`` what of its own this machine has, and the machine's own where that is none.

        A message lists the omitted ones, with the command that installs them.
        """
        if self.chosen:
            return self.chosen
        wanted = [of_name(name) for name in case.host_compilers]
        there = tuple(each for each in wanted if found(each))
        if missing := [each.name for each in wanted if each not in there]:
            hint(
                f"{case.name}: left out, since this machine does not have them: {', '.join(missing)} ({install(missing)}). "
                "--host-compiler asks for them all the same"
            )
        return there or (own(),)


def parse_host_compilers(texts: Iterable[str]) -> tuple[HostCompiler, ...]:
    """Read ``gcc-11,gcc-13``, ``gcc-11..gcc-14``, ``all`` and ``glibc-2.43=/opt/new/bin/g++``.

    Returns
    -------
    tuple of HostCompiler
        Each with its version where it is there.

    Raises
    ------
    UsageError
        On what is none, and where a program that is named by its path is neither gcc nor clang.
    """
    values = [value.strip() for text in texts for value in text.split(",")]
    chosen = [compiler for value in values if value for compiler in _read(value)]
    if values and not chosen:
        raise UsageError(f"--host-compiler: no compiler is named; write {HOST_COMPILERS}")
    programs: dict[str, str] = {}
    for each in chosen:
        if programs.setdefault(each.name, each.program) != each.program:
            raise UsageError(
                f"--host-compiler: {programs[each.name]} and {each.program} are both called {each.name}: give one of them a name of its own, "
                f"NAME={each.program}"
            )
    return tuple(dict.fromkeys(chosen))


def _read(value: str) -> list[HostCompiler]:
    if value == "all":
        if here := on_path():
            return here
        raise UsageError(f"--host-compiler all: there is none on the path: {install(['gcc-13'])}")
    first, dots, last = value.partition("..")
    if dots:
        ends = [re.fullmatch(NAME, end) for end in (first, last)]
        if ends[0] and ends[1] and ends[0][1] == ends[1][1] and int(ends[0][2]) <= int(ends[1][2]):
            return [of_name(f"{ends[0][1]}-{number}") for number in range(int(ends[0][2]), int(ends[1][2]) + 1)]
    elif re.fullmatch(NAME, value):
        return [of_name(value)]
    elif os.sep in value:
        return [_of_path(value)]
    raise UsageError(f"--host-compiler {value!r}: write {HOST_COMPILERS}")


def of_name(name: str) -> HostCompiler:
    """``gcc-13``: g++-13 on the path, with its version where it is there."""
    compiler = named(name)
    path = found(compiler)
    return replace(compiler, version=(version_of(path) if path else "") or compiler.version)


def _of_path(value: str) -> HostCompiler:
    name, equals, path = value.partition("=")
    if not equals:
        name, path = "", value
    elif not _OWN_NAME.fullmatch(name):
        raise UsageError(f"--host-compiler {value!r}: {name!r} is no name of small letters, digits, '-', '.' and '+'")
    program = str(Path(path).expanduser().absolute())
    if not shutil.which(program):
        raise UsageError(f"--host-compiler {value!r}: {path} is no program")
    version = version_of(program)
    if not version:
        raise UsageError(f"--host-compiler {value!r}: {path} --version tells of neither gcc nor clang")
    return HostCompiler(name=name or version.partition(",")[0].replace(" ", "-"), version=version, program=program)


def on_path() -> list[HostCompiler]:
    """Every gcc and clang that is on the path under a name with its version."""
    names = set()
    for folder in filter(os.path.isdir, os.environ.get("PATH", os.defpath).split(os.pathsep)):
        for program in os.listdir(folder):
            if match := re.fullmatch(r"(g|clang)\+\+-(\d{1,2})", program):
                names.add((("clang", "gcc")[match[1] == "g"], int(match[2])))
    ordered = sorted(names, key=lambda each: (each[0] != "gcc", each[1]))
    return [of_name(f"{family}-{number}") for family, number in ordered]


def own() -> HostCompiler:
    """The machine's own, which nvcc uses by default."""
    path = shutil.which(os.environ.get("NVCC_CCBIN") or "gcc")
    return HostCompiler(version=version_of(path) if path else "")


def found(compiler: HostCompiler) -> str:
    """Path of a requested host compiler on this machine; empty if it is missing."""
    return shutil.which(compiler.program) or ""


def absent(compiler: HostCompiler) -> str:
    """The reason why cells cannot have the requested host compiler; empty if they can, or without a request."""
    if not compiler.name or found(compiler):
        return ""
    advice = [install([compiler.name]), "name one by its path: --host-compiler NAME=/opt/gcc/bin/g++"]
    return f"{compiler.name} is not here, no {compiler.program} on the path: {', or '.join(filter(None, advice))}"


def install(names: Sequence[str]) -> str:
    """The command that installs host compilers; empty for what has no package."""
    packages = [_PACKAGES[match[1]].format(match[2]) for name in names if (match := re.fullmatch(NAME, name))]
    return f"apt-get install {' '.join(packages)}" if packages else ""


@lru_cache
def version_of(program: str) -> str:
    """A compiler's version and that of the C library whose headers it finds: ``gcc 12.2.0, glibc 2.36``; empty for anything but gcc and clang."""
    own = told_version(_said([program, "--version"]).partition("\n")[0])
    if not own:
        return ""
    macros = _said([program, "-E", "-dM", "-x", "c++", "-include", "features.h", "/dev/null"])
    library = [re.search(rf"^#define {name} (\d+)$", macros, re.MULTILINE) for name in ("__GLIBC__", "__GLIBC_MINOR__")]
    return f"{own}, glibc {library[0][1]}.{library[1][1]}" if library[0] and library[1] else own


def _said(argv: Sequence[str]) -> str:
    try:
        done = process_output.run(argv, seconds=_SECONDS, errors=process_output.Errors.DROPPED)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.said if done.code == 0 else ""
