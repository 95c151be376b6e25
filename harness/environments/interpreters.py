"""Pythons of this machine: the one that runs cumatrix, and every other that environments can be made with."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import uv
from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags

from harness.errors import PartUnavailable, UsageError

OLDEST = (3, 9)
"""The first Python that cumatrix's workers run in."""
_SECONDS = 60


@dataclass(frozen=True)
class Python:
    """An interpreter.

    Parameters
    ----------
    path : str
        Its executable.
    version : str
        ``"3.11.7"``.
    """

    path: str
    version: str

    @property
    def minor(self) -> str:
        """``"3.11"``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def number(self) -> tuple[int, int]:
        """``(3, 11)``."""
        major, minor = self.minor.split(".")
        return int(major), int(minor)


OWN = Python(os.path.realpath(sys.executable), platform.python_version())
"""The Python of this process, without its environment."""


@cache
def tags_of(number: tuple[int, int]) -> frozenset[Tag]:
    """Tags of the wheels that a CPython takes on this machine."""
    platforms = list(platform_tags())
    interpreter = f"cp{number[0]}{number[1]}"
    return frozenset([*cpython_tags(number, platforms=platforms), *compatible_tags(number, interpreter, platforms)])


@cache
def pythons() -> tuple[Python, ...]:
    """One of each minor version of CPython: cumatrix's own first, then the others, the newest first."""
    found = {OWN.number: OWN}
    for python in (*_known_to_uv(), *_of_pyenv()):
        if python.number >= OLDEST:
            found.setdefault(python.number, python)
    rest = sorted((number for number in found if number != OWN.number), reverse=True)
    return (OWN, *(found[number] for number in rest))


def parse_pythons(text: str) -> list[Python]:
    """Read ``3.9,3.13``.

    Raises
    ------
    UsageError
        On what is no version of Python.
    PartUnavailable
        Where this machine has none of that version, and uv cannot fetch one.
    """
    chosen: dict[tuple[int, int], Python] = {}
    for word in filter(None, (item.strip() for item in text.split(","))):
        if not re.fullmatch(r"\d\.\d{1,2}(\.\d{1,3})?", word):
            raise UsageError(f"{word!r} is no version of Python such as 3.13")
        number = (int(word.split(".")[0]), int(word.split(".")[1]))
        if number < OLDEST:
            raise UsageError(f"cumatrix's workers run in Python {OLDEST[0]}.{OLDEST[1]} and later, not in {word}")
        chosen[number] = _there(word, number) or _fetch(word)
    if not chosen:
        raise UsageError(f"{text!r} names no version of Python such as 3.13")
    return list(chosen.values())


def is_version(text: str) -> bool:
    """Return whether a text is a version of Python such as ``3.13``, and not a path."""
    return bool(re.fullmatch(r"3\.\d{1,2}(\.\d{1,3})?", text.strip()))


def _there(word: str, number: tuple[int, int]) -> Python | None:
    exact = word.count(".") == 2
    return next((each for each in pythons() if each.number == number and (not exact or each.version == word)), None)


def _fetch(word: str) -> Python:
    """A Python that uv has, or downloads."""
    _uv("python", "install", "--quiet", word)
    path = _uv("python", "find", "--managed-python", word).strip()
    if not path:
        has = ", ".join(each.minor for each in pythons())
        raise PartUnavailable(
            f"this machine has no Python {word}, and uv cannot fetch one; it has {has} (`uv python install {word}` says why)"
        )
    return Python(path, _version(path) or word)


def _known_to_uv() -> Iterator[Python]:
    try:
        told = json.loads(_uv("python", "list", "--only-installed", "--output-format", "json") or "[]")
        for item in told:
            if item["implementation"] == "cpython" and item.get("variant", "default") == "default":
                yield Python(str(item["path"]), str(item["version"]))
    except (ValueError, KeyError, TypeError):
        return


def _of_pyenv() -> Iterator[Python]:
    """Those of pyenv, which uv finds only where they are chosen."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    names: Iterable[str]
    try:
        names = sorted(os.listdir(root / "versions"), reverse=True)
    except OSError:
        return
    for name in names:
        path = root / "versions" / name / "bin" / "python"
        if re.fullmatch(r"3\.\d+\.\d+", name) and os.access(path, os.X_OK):
            yield Python(str(path), name)


def _version(path: str) -> str:
    words = [path, "-I", "-c", "import platform; print(platform.python_version())"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _uv(*words: str) -> str:
    """Output of uv; empty if it fails."""
    try:
        done = subprocess.run(
            [uv.find_uv_bin(), *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
