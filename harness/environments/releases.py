"""Releases of the libraries under test as users choose them, and the installed Pythons that they support."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags, platform_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from harness.environments.index import File, Index
from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.libraries import LIBRARIES, with_releases
from harness.toolkits.download import uv_program

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
    return Python(path, _python_version(path) or word)


def _known_to_uv() -> Iterator[Python]:
    try:
        listed = json.loads(_uv("python", "list", "--only-installed", "--output-format", "json") or "[]")
        for item in listed:
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


def _python_version(path: str) -> str:
    words = [path, "-I", "-c", "import platform; print(platform.python_version())"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _uv(*words: str) -> str:
    """Output of uv; empty if it fails."""
    try:
        done = subprocess.run(
            [uv_program(), *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class NoSuchRelease(UsageError):
    """Words that none of the known releases is meant by."""


NAMES = with_releases()
"""Libraries that ``--with`` takes."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A release of a library, as the index has it.

    Parameters
    ----------
    library : str
        Its name in `harness.libraries.LIBRARIES`.
    version : Version
        Its version.
    wheels : Mapping[str, tuple of File]
        By distribution: its wheels, whatever they are for.
    builds : tuple of str
        Local versions of other builds of it that the index has: ``cpu``.
    """

    library: str
    version: Version
    wheels: Mapping[str, tuple[File, ...]]
    builds: tuple[str, ...] = ()

    @property
    def date(self) -> datetime | None:
        """When its first wheel was uploaded; None where the index does not tell."""
        return min((file.date for file in self._files if file.date), default=None)

    @property
    def day(self) -> str:
        """``2024-01-18``; empty where the index does not tell."""
        return self.date.date().isoformat() if self.date else ""

    @property
    def yanked(self) -> bool:
        """Return whether all of it was yanked."""
        return all(file.yanked for file in self._files)

    @property
    def _files(self) -> list[File]:
        return [file for files in self.wheels.values() for file in files]

    def distribution(self, major: int | None) -> str | None:
        """The distribution for a major CUDA release, or the one for any; None where it has none."""
        library = LIBRARIES[self.library]
        fits = library.distributions
        if library.majors and major is not None and major not in library.majors:
            return None
        own = (name for name in self.wheels if fits[name].split(".")[0] == str(major) and fits[name])
        return next(own, next((name for name in self.wheels if not fits[name]), None))

    @property
    def majors(self) -> list[int]:
        """Major CUDA releases that it has a distribution for; empty where one distribution is for all."""
        library = LIBRARIES[self.library]
        fits = library.distributions
        return sorted(library.majors) or sorted(int(fits[name].split(".")[0]) for name in self.wheels if fits[name])

    def wheel_for(self, distribution: str, python: Python) -> File | None:
        """A wheel that a Python takes on this machine."""
        return next((file for file in self.wheels.get(distribution, ()) if _fits(file, python)), None)

    def pythons(self, distributions: Iterable[str] | None = None) -> list[str]:
        """Minor versions of CPython that have a wheel on this machine, oldest first."""
        names = list(self.wheels if distributions is None else distributions)
        return [
            f"3.{minor}"
            for minor in range(7, 20)
            if any(self.wheel_for(name, Python("", f"3.{minor}.99")) for name in names)
        ]


def _fits(file: File, python: Python) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # a tenth of all that a run imports

    try:
        tags = parse_wheel_filename(file.name)[3]
        required = SpecifierSet(file.requires_python)
    except (InvalidWheelFilename, InvalidSpecifier):
        return False
    return bool(tags & tags_of(python.number)) and required.contains(python.version, prereleases=True)


def published(library: str, index: Index) -> list[Published]:
    """Every release of a library that the index has a wheel of, oldest first.

    Raises
    ------
    PartUnavailable
        When the index cannot be asked.
    """
    found: dict[Version, dict[str, list[File]]] = {}
    for distribution in LIBRARIES[library].distributions:
        for file in index.files(distribution):
            if file.name.endswith(".whl"):
                try:
                    number = LIBRARIES[library].number_of(str(parse_wheel_filename(file.name)[1]))
                except InvalidWheelFilename:
                    continue
                if not number:
                    continue
                version = Version(number)
                found.setdefault(version, {}).setdefault(distribution, []).append(file)
    builds: dict[str, list[str]] = {}
    for version in found:
        if version.local:
            builds.setdefault(version.public, []).append(version.local)
    return [
        Published(
            library=library,
            version=version,
            wheels={name: tuple(files) for name, files in wheels.items()},
            builds=() if version.local else tuple(builds.get(version.public, ())),
        )
        for version, wheels in sorted(found.items())
    ]


@dataclass(frozen=True)
class Wanted:
    """One ``--with``.

    Parameters
    ----------
    library : str
        Its name.
    words : tuple of str
        Versions, series, ranges, ``all`` and ``pre``, as they were written.
    """

    library: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.library}={','.join(self.words)}"


def parse_with(text: str) -> Wanted:
    """Read ``cupy=12,13.0,13.1..14``.

    Raises
    ------
    UsageError
        On a library that is not known, and on what is no version.
    """
    name, equals, spec = text.partition("=")
    name = canonicalize_name(name.strip())
    words = tuple(filter(None, (word.strip().removesuffix(".*") for word in spec.lstrip("=").split(","))))
    if name not in NAMES:
        raise UsageError(f"--with {text}: {_unknown(text, name)}")
    if not equals or not words:
        raise UsageError(f"--with {text}: name versions as in {name}={_example(name)}")
    for word in words:
        if word not in ("all", "pre"):
            if word == "..":
                raise UsageError(f"--with {text}: a range has an end, as in 13.1..14; all stands for every release")
            ends = [_version(end, text) for end in word.split("..", 1) if end]
            if len(ends) == 2 and ends[1] < ends[0] and not _in_series(ends[0], ends[1]):
                raise UsageError(f"--with {text}: a range goes from the older to the newer: {ends[1]}..{ends[0]}")
    if words == ("pre",):
        raise UsageError(f"--with {text}: pre adds pre-releases to versions, as in {name}=all,pre")
    return Wanted(name, words)


def _unknown(text: str, name: str) -> str:
    """The error in a name, and where to ask for the intended one."""
    first = re.split(r"[\s<>=!~@]", text.strip())[0]
    owner = next((own for own in NAMES if canonicalize_name(first) in LIBRARIES[own].distributions), None)
    if text.strip().startswith("-"):
        return "an editable install names its folder, as in -e ../numba-cuda"
    if owner and "@" in text:
        return f"behind @ comes what is built: a folder, a wheel or git+ADDRESS@REVISION, as in {owner} @ ./{owner}"
    if owner == canonicalize_name(first):
        return f"name versions as in {owner}={_example(owner)}, or a range such as {owner}={_example(owner)}.."
    if owner:
        return f"{first} is a wheel of {owner}, which follows the toolkit (-t): write {owner}=V"
    if name in ("cutlass", "cccl", "cuda", "toolkit"):
        option = "--library NAME=V" if name in ("cutlass", "cccl") else "-t V"
        return f"--with takes {', '.join(NAMES)}; {name} is named with {option}"
    return f"unknown library {name!r}{did_you_mean(name, NAMES)}" if name else f"name a library: {', '.join(NAMES)}"


def choose(wanted: Wanted, releases: Sequence[Published]) -> list[Published]:
    """The releases that words select, oldest first.

    ``13.0.0`` is that release; ``13`` and ``13.0`` the newest of theirs; ``13.1..14`` all from 13.1.0 to the newest 14.*; ``13.1..`` all from there on;
    ``all`` every supported one. Pre-releases count if one is named, or with ``pre``.

    Raises
    ------
    NoSuchRelease
        On words that no release is meant by.
    PartUnavailable
        When the index has no release at all.
    """
    if not releases:
        raise PartUnavailable(f"the index has no release of {wanted.library}")
    chosen: dict[Version, Published] = {}
    pre = "pre" in wanted.words
    for word in wanted.words:
        if word != "pre":
            found = _of_word(word, [each for each in releases if not each.yanked or str(each.version) == word], pre=pre)
            if not found:
                raise NoSuchRelease(
                    f"--with {wanted}: the index has no {wanted.library} {word}{_nearest(word, releases)}"
                )
            chosen |= {each.version: each for each in found}
    return [chosen[version] for version in sorted(chosen)]


def _of_word(word: str, releases: Sequence[Published], *, pre: bool) -> list[Published]:
    first, last = _ends(word)
    named = pre or any(end.is_prerelease for end in (first, last) if end)
    plain = [
        each for each in releases
        if (named or not each.version.is_prerelease)
        # Builds of one release for CUDA or for processors alone need their full names.
        and (not each.version.local or str(each.version) == word)
    ]  # fmt: skip
    if word == "all" or ".." in word:
        since = Version(LIBRARIES[releases[0].library].since) if releases else None
        return [
            each for each in plain
            if (since is None or each.version >= since)
            and (first is None or each.version >= first)
            and (last is None or each.version <= last or _in_series(each.version, last))
        ]  # fmt: skip
    exact = [each for each in plain if each.version == first]
    series = [each for each in plain if first and _in_series(each.version, first)]
    whole = first is not None and len(first.release) > 2
    return exact if exact and whole else series[-1:]


def _ends(word: str) -> tuple[Version | None, Version | None]:
    if word == "all":
        return None, None
    low, dots, high = word.partition("..")
    first = Version(low) if low else None
    return first, (Version(high) if high else None) if dots else first


def _in_series(version: Version, series: Version) -> bool:
    """Return whether 13.6.0 belongs to the series 13; a pre-release and a build are series of their own."""
    if series.is_prerelease or series.local or series.post is not None:
        return version == series
    length = len(series.release)
    padded = (*version.release, *(0,) * length)
    return padded[:length] == series.release


def _version(word: str, text: str) -> Version:
    try:
        return Version(word)
    except InvalidVersion:
        there = f"; for the environment or the Python of that name write ./{word}" if os.path.exists(word) else ""
        raise UsageError(
            f"--with {text}: {word!r} is no version such as 13.1.0, series such as 13, or range such as 13.1..14{there}"
        ) from None


def _nearest(word: str, releases: Sequence[Published]) -> str:
    """Releases with the same first number, or all."""
    versions = [each.version for each in releases if not each.version.is_prerelease and not each.version.local]
    same = [version for version in versions if str(version.release[0]) == word.split(".")[0]]
    named = [str(version) for version in same or versions]
    return f"; it has {', '.join(named if len(named) < 8 else [*named[:2], '…', *named[-4:]])}"


def _example(library: str) -> str:
    newest = LIBRARIES[library].releases[-1].version
    return re.sub(r"\.\*$", "", newest)
