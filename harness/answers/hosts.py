"""Host compilers in questions: which of them cells were compiled with, and what that tells of the ones that a question names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from harness.answers.spelling import in_series
from harness.backends import BACKENDS
from harness.model.host import VERSIONS, HostCompiler, told_version

OTHER = "host compiler"
"""The axis of host compilers whose names tell no version, such as those that a user has named."""


@cache
def split_host(name: str) -> tuple[str, str]:
    """Split the name of a host compiler: ``gcc-13`` is ``gcc`` and ``13``, ``glibc-2.43`` is ``glibc`` and ``2.43``."""
    found = re.fullmatch(rf"({'|'.join(VERSIONS)})-(\d{{1,9}}(?:\.\d{{1,9}})*)", name)
    return (found[1], found[2]) if found else (OTHER, name) if name else ("", "")


def is_host(axis: str) -> bool:
    """Return whether versions on this axis are those of a host compiler."""
    return axis in VERSIONS or axis == OTHER


@cache
def hosted() -> tuple[str, ...]:
    """Backends that hand the host's half of a program to a host compiler."""
    return tuple(info.name for info in BACKENDS.values() if info.nvcc)


def own_of(backend: str, name: str, toolchain: Mapping[str, Any]) -> str:
    """The machine's own host compiler, with its version, of a cell without a requested one; empty if there is none.

    Parameters
    ----------
    backend, name : str
        The backend, and the requested host compiler.
    toolchain : Mapping
        As in the record; those of early versions tell only what the compiler said.
    """
    if name or backend not in hosted():
        return ""
    asked, said = (toolchain[key].get("host_compiler") or "" for key in ("requested", "observed"))
    return str(asked) or told_version(str(said))


def own_in(records: Iterable[Mapping[str, Any]]) -> set[str]:
    """The machines' own host compilers of records: `own_of` of each."""
    return {own_of(record["backend"], record.get("host_compiler", ""), record["toolchain"]) for record in records} - {
        ""
    }


def are_own(own: Iterable[str], asked: Mapping[str, Sequence[str]]) -> bool:
    """Return whether cells without a requested host compiler were all compiled with the one a question names. The page's script does the same (`assets/answer.js`).

    Parameters
    ----------
    own : iterable of str
        Versions of the machines' own ones: ``gcc 12.2.0, glibc 2.36``.
    asked : Mapping[str, sequence of str]
        Versions by name: of ``gcc``, ``clang``, ``glibc``; none of them for all.
    """
    told = [HostCompiler(version=version).versions for version in own]
    return bool(told) and all(
        versions[name] and (not wanted or any(in_series(versions[name], each) for each in wanted))
        for versions in told
        for name, wanted in asked.items()
    )
