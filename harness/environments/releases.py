"""Releases of the libraries under test as users select them, and the installed Pythons that they support."""

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
"""The oldest Python that cumatrix's workers support."""
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
"""The Python of this process, outside any virtual environment."""


@cache
def tags_of(number: tuple[int, int]) -> frozenset[Tag]:
    """Return the wheel tags that a CPython supports on this machine."""
    platforms = list(platform_tags())
    interpreter = f"cp{number[0]}{number[1]}"
    return frozenset([*cpython_tags(number, platforms=platforms), *compatible_tags(number, interpreter, platforms)])


@cache
def pythons() -> tuple[Python, ...]:
    """Return one interpreter for each minor version of CPython: cumatrix's own first, then the others, newest first."""
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
        If a word is not a version of Python, or the version is too old.
    PartUnavailable
        If this machine lacks a version, and uv cannot download it.
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
    """Return a Python from uv, which downloads it if necessary."""
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
    """Yield pyenv's interpreters; uv finds only the active ones."""
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
    """Run uv and return its output; empty if it fails."""
    try:
        done = subprocess.run(
            [uv_program(), *words], capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


class NoSuchRelease(UsageError):
    """A version, series or range without a release."""


NAMES = with_releases()
"""The libraries that ``--with`` accepts."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """A release of a library on the index.

    Parameters
    ----------
    library : str
        Its name in `harness.libraries.LIBRARIES`.
    version : Version
        Its version.
    wheels : Mapping[str, tuple of File]
        Its wheels by distribution, for every platform and Python.
    builds : tuple of str
        Local versions of its other builds on the index: ``cpu``.
    """

    library: str
    version: Version
    wheels: Mapping[str, tuple[File, ...]]
    builds: tuple[str, ...] = ()

    @property
    def date(self) -> datetime | None:
        """The upload time of its first wheel; None if the index does not provide it."""
        return min((file.date for file in self._files if file.date), default=None)

    @property
    def day(self) -> str:
        """The upload date, ``2024-01-18``; empty if the index does not provide it."""
        return self.date.date().isoformat() if self.date else ""

    @property
    def yanked(self) -> bool:
        """Return whether every wheel of the release was yanked."""
        return all(file.yanked for file in self._files)

    @property
    def _files(self) -> list[File]:
        return [file for files in self.wheels.values() for file in files]

    def distribution(self, major: int | None) -> str | None:
        """Return the distribution for a major CUDA release, or the one for any release; None if there is neither."""
        library = LIBRARIES[self.library]
        fits = library.distributions
        if library.majors and major is not None and major not in library.majors:
            return None
        own = (name for name in self.wheels if fits[name].split(".")[0] == str(major) and fits[name])
        return next(own, next((name for name in self.wheels if not fits[name]), None))

    @property
    def majors(self) -> list[int]:
        """The major CUDA releases with a distribution; empty if one distribution supports all."""
        library = LIBRARIES[self.library]
        fits = library.distributions
        return sorted(library.majors) or sorted(int(fits[name].split(".")[0]) for name in self.wheels if fits[name])

    def wheel_for(self, distribution: str, python: Python) -> File | None:
        """Return a wheel that a Python supports on this machine, or None."""
        return next((file for file in self.wheels.get(distribution, ()) if _fits(file, python)), None)

    def pythons(self, distributions: Iterable[str] | None = None) -> list[str]:
        """Return the minor versions of CPython with a wheel for this machine, oldest first."""
        names = list(self.wheels if distributions is None else distributions)
        return [
            f"3.{minor}"
            for minor in range(7, 20)
            if any(self.wheel_for(name, Python("", f"3.{minor}.99")) for name in names)
        ]


def _fits(file: File, python: Python) -> bool:
    from packaging.specifiers import (  # a tenth of a run's import time
        InvalidSpecifier,
        SpecifierSet,
    )

    try:
        tags = parse_wheel_filename(file.name)[3]
        required = SpecifierSet(file.requires_python)
    except (InvalidWheelFilename, InvalidSpecifier):
        return False
    return bool(tags & tags_of(python.number)) and required.contains(python.version, prereleases=True)


def published(library: str, index: Index) -> list[Published]:
    """Return every release of a library with a wheel on the index, oldest first.

    Raises
    ------
    PartUnavailable
        If the index is unreachable.
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
    """One value of ``--with``.

    Parameters
    ----------
    library : str
        Its name.
    words : tuple of str
        Versions, series, ranges, ``all`` and ``pre``, as the user wrote them.
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
        If the library is unknown, or a version is invalid.
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
                raise UsageError(f"--with {text}: a range has an end, as in 13.1..14; all selects every release")
            ends = [_version(end, text) for end in word.split("..", 1) if end]
            if len(ends) == 2 and ends[1] < ends[0] and not _in_series(ends[0], ends[1]):
                raise UsageError(f"--with {text}: a range goes from the older to the newer: {ends[1]}..{ends[0]}")
    if words == ("pre",):
        raise UsageError(f"--with {text}: pre adds pre-releases to versions, as in {name}=all,pre")
    return Wanted(name, words)


def _unknown(text: str, name: str) -> str:
    """Describe the error in a name, and name the option that accepts it."""
    first = re.split(r"[\s<>=!~@]", text.strip())[0]
    owner = next((own for own in NAMES if canonicalize_name(first) in LIBRARIES[own].distributions), None)
    if text.strip().startswith("-"):
        return "an editable install names its folder, as in -e ../numba-cuda"
    if owner and "@" in text:
        return f"name the source to build after @: a folder, a wheel or git+ADDRESS@REVISION, as in {owner} @ ./{owner}"
    if owner == canonicalize_name(first):
        return f"name versions as in {owner}={_example(owner)}, or a range such as {owner}={_example(owner)}.."
    if owner:
        return f"{first} is a wheel of {owner}, which follows the toolkit (-t): write {owner}=V"
    if name in ("cutlass", "cccl", "cuda", "toolkit"):
        option = "--library NAME=V" if name in ("cutlass", "cccl") else "-t V"
        return f"--with takes {', '.join(NAMES)}; {name} is named with {option}"
    return f"unknown library {name!r}{did_you_mean(name, NAMES)}" if name else f"name a library: {', '.join(NAMES)}"


def choose(wanted: Wanted, releases: Sequence[Published]) -> list[Published]:
    """Return the selected releases, oldest first.

    ``13.0.0`` selects that release. ``13`` and ``13.0`` select the newest release of their series. ``13.1..14`` selects all releases from 13.1.0
    to the newest 14.*, and ``13.1..`` all from 13.1.0 on. ``all`` selects every supported release. Pre-releases are included if a version
    names one, or with ``pre``.

    Raises
    ------
    NoSuchRelease
        If a version, series or range matches no release.
    PartUnavailable
        If the index has no release at all.
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
        # CUDA and CPU builds of a release are selected by their full version only.
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
    """Return whether a version belongs to a series, as 13.6.0 to 13; a pre-release or a build is its own series."""
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
    """List the releases with the same major version, or all releases."""
    versions = [each.version for each in releases if not each.version.is_prerelease and not each.version.local]
    same = [version for version in versions if str(version.release[0]) == word.split(".")[0]]
    named = [str(version) for version in same or versions]
    return f"; it has {', '.join(named if len(named) < 8 else [*named[:2], '…', *named[-4:]])}"


def _example(library: str) -> str:
    newest = LIBRARIES[library].releases[-1].version
    return re.sub(r"\.\*$", "", newest)
