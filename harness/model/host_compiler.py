"""Host compilers: what nvcc hands the host's half of a program to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

VERSIONS = ("gcc", "clang", "glibc")
"""Versions of a host compiler for conditions: its own, under the name of its family, and that of the C library whose headers it finds."""

NAME = r"(gcc|clang)-(\d{1,2})"
"""Names of the machine's host compilers, as distributions name their packages."""

PROGRAMS = {"gcc": "g++", "clang": "clang++"}
"""The program of each family: nvcc needs a C++ compiler."""


@dataclass(frozen=True, kw_only=True)
class HostCompiler:
    """A host compiler, as a toolchain asks for it; two of one name are the same.

    Parameters
    ----------
    name : str
        Its name: ``gcc-13``. Empty for the machine's own.
    version : str
        What it says of itself: ``gcc 12.2.0, glibc 2.36``; of one that is not there what its name says, and empty where that says nothing.
    program : str
        The program: a path, or a name to look for on the path.
    """

    name: str = ""
    version: str = field(default="", compare=False)
    program: str = field(default="", compare=False)

    @property
    def versions(self) -> dict[str, str]:
        """Each of `VERSIONS`; empty for what it has not."""
        return dict(_versions(self.version))


@lru_cache(maxsize=256)
def _versions(told: str) -> dict[str, str]:
    """Read once: every cell of nvcc asks for it, and a machine has few host compilers."""
    pairs = (part.partition(" ") for part in told.split(", "))
    return {**dict.fromkeys(VERSIONS, ""), **{name: number for name, _, number in pairs if name in VERSIONS}}


def told_version(line: str) -> str:
    """Parse the first line of ``--version``: ``gcc 12.2.0``; empty for anything but gcc and clang."""
    clang = re.search(r"clang version (\d+(?:\.\d+)*)", line)
    gcc = re.search(r"(?:g\+\+|gcc|GCC|c\+\+|cc)\S*(?: \(.*\))? (\d+(?:\.\d+)+)", line)
    return f"clang {clang[1]}" if clang else f"gcc {gcc[1]}" if gcc else ""


UNASKED = HostCompiler()
"""The default host compiler."""


def named(name: str, version: str = "") -> HostCompiler:
    """A host compiler from the name in a record, a plan or a case, and maybe its version; ``gcc-13`` is the program g++-13."""
    found = re.fullmatch(NAME, name)
    if not found:
        return HostCompiler(name=name, version=version)
    program = f"{PROGRAMS[found[1]]}-{found[2]}"
    return HostCompiler(name=name, version=version or f"{found[1]} {found[2]}", program=program)
