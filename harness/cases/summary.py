"""Output of ``cumatrix cases list`` for a case; no compiler is needed.

A summary is taken where nothing is other than it was when the case was read: no file below the case's folder, nothing of cumatrix's own,
no backend or library that a case can name, nothing installed. Only summaries that follow from all this are kept: no case with a file outside
of its folder, or is a link, or has changed so lately that the file's times would not tell of another change.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

import harness
from harness.backends import BACKENDS
from harness.cases.discovery import Roots, read_cases
from harness.libraries import names_in_conditions
from harness.user_folders import keep, read_kept

if TYPE_CHECKING:
    from harness.model.case import Case


@dataclass(frozen=True, kw_only=True)
class CaseSummary:
    """One line of ``cases list``."""

    name: str
    topic: str
    title: str
    heavy: bool
    features: tuple[str, ...]
    languages: tuple[str, ...]
    backends: tuple[str, ...]
    variants: int
    links: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON value of every field."""
        return asdict(self)


def summary_of(case: Case) -> CaseSummary:
    """The summary of a case."""
    return CaseSummary(
        name=case.name,
        topic=case.topic,
        title=case.title,
        heavy=case.heavy,
        features=case.features,
        languages=tuple(case.sources),
        backends=backends_of(case),
        variants=len(case.variants),
        links=case.links,
    )


def backends_of(case: Case) -> tuple[str, ...]:
    """Names of the backends that have something to compile in a case."""
    return backends_among(case.sources, case.backends)


def backends_among(languages: Collection[str], only: Collection[str]) -> tuple[str, ...]:
    """As `backends_of`, of a case with programs in these languages that is for these backends only, or for all."""
    return tuple(info.name for info in BACKENDS.values() if info.language_among(languages, only))


_FILE = "cases.json"
_MOST = 3000
"""Number of cases of other folders that are kept with those of the present one."""
_SETTLED = 2 * 10**9
"""Nanoseconds after which another change of a file has another time, on any file system."""


def summaries(root: Roots, selection: Sequence[str] = (), programs: Sequence[Case] = ()) -> list[CaseSummary]:
    """Summaries of the chosen cases, sorted by name.

    Parameters
    ----------
    root, selection, programs
        As for `harness.cases.discovery.load_cases`.

    Raises
    ------
    CaseError
        As there: a case that cannot be used is never kept.
    """
    kept = _Kept()
    found = read_cases(root, selection, programs, kept.read)
    kept.close()
    return [each if isinstance(each, CaseSummary) else summary_of(each) for each in found]


class _Kept:
    """Summaries of an earlier command, and those that this one has read."""

    def __init__(self) -> None:
        self._by = _made_by()
        there = read_kept(_FILE)
        entries = there.get("cases") if there.get("by") == self._by else None
        self._entries: dict[str, Any] = entries if isinstance(entries, dict) else {}
        self._new: dict[str, Any] = {}
        self._now = time.time_ns()

    def read(self, path: Path, root: Path) -> CaseSummary:
        """The summary of a case: kept, or read now."""
        place, state = os.path.realpath(path), _state(path.parent, self._now)
        name = path.parent.relative_to(root).as_posix()
        entry = self._entries.get(place)
        if state and isinstance(entry, dict) and entry.get("state") == state and (said := _said(entry, name)):
            return said
        from harness.cases.load import load_case  # most of the time, no case is read

        case = load_case(path, root)
        summary = summary_of(case)
        if state and _stands_alone(case):
            self._new[place] = {"state": state, "only": case.backends, **summary.to_json()}
        return summary

    def close(self) -> None:
        """Keep what was read: a folder's last, of others those that are still there."""
        if self._new:
            # Another command may have kept some in the meantime.
            there = read_kept(_FILE)
            entries = there["cases"] if there.get("by") == self._by and isinstance(there.get("cases"), dict) else {}
            others = [place for place in entries if place not in self._new and os.path.exists(place)]
            keep(
                _FILE, {"by": self._by, "cases": {**{place: entries[place] for place in others[-_MOST:]}, **self._new}}
            )


def _said(entry: Mapping[str, Any], name: str) -> CaseSummary | None:
    """The summary in an entry; None where it is none, or of a case of another name."""
    texts, lists = ("name", "topic", "title"), ("features", "languages", "only", "links")
    good = (
        all(isinstance(entry.get(key), str) for key in texts)
        and all(_texts(entry.get(key)) for key in lists)
        and isinstance(entry.get("heavy"), bool)
        and isinstance(entry.get("variants"), int)
    )
    if not good or entry["name"] != name:
        return None
    said: dict[str, Any] = {key: entry[key] for key in (*texts, "heavy", "variants")}
    said |= {key: tuple(entry[key]) for key in lists if key != "only"}
    return CaseSummary(**said, backends=backends_among(entry["languages"], entry["only"]))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _stands_alone(case: Case) -> bool:
    """Return whether all files of a case are below its folder."""
    from harness.toolkits.header_libraries import is_release

    named = [version for variant in case.variants for version in variant.libraries.values()]
    return case.root is None and all(map(is_release, named))


def _state(folder: Path, now: int) -> str:
    """A hash over everything below a folder except file contents, represented by their times; empty if times are not enough."""
    digest = hashlib.sha256()
    try:
        for path, found in _below(str(folder)):
            if S_ISDIR(found.st_mode):
                told: tuple[object, ...] = (path, found.st_mode)
            elif S_ISREG(found.st_mode) and max(found.st_mtime_ns, found.st_ctime_ns) < now - _SETTLED:
                told = (path, *found[:3], found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            else:
                return ""
            digest.update(repr(told).encode("utf-8", "surrogateescape"))
    except OSError:
        return ""
    return digest.hexdigest()


def _below(folder: str, inside: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Files and folders in an order of their own, each with what the system says of it; links are not followed."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = f"{inside}{entry.name}"
            yield name, entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{name}/")


@cache
def _made_by() -> str:
    """A hash over what else a summary, and whether a case is right, follows from."""
    own = [
        (path, found.st_size, found.st_mtime_ns, found.st_ino)
        for path, found in _below(os.path.dirname(harness.__file__))
        if path.endswith((".py", ".toml"))
    ]
    installed = [(place, os.stat(place).st_mtime_ns) for place in sys.path[1:] if os.path.isdir(place)]
    names = (list(BACKENDS), names_in_conditions())
    told = (harness.__version__, sys.version, harness.__file__, os.geteuid(), own, installed, names)
    return hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()
