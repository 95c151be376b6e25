"""The CUDA releases that cumatrix knows, and how users name them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from harness.errors import UsageError, did_you_mean
from harness.model import ToolkitRef
from harness.model.condition import Version
from harness.tables import read_table
from harness.toolkits.local import find_local, local_toolkit


@dataclass(frozen=True, kw_only=True)
class Release:
    """One CUDA release as wheels.

    Parameters
    ----------
    name : str
        ``"12.4"``.
    packages : Mapping[str, str]
        Exact version by the full name of the wheel on PyPI.
    borrowed : Mapping[str, str]
        Wheels that are another CUDA release's, since its own lack files, and that release.
    day : date
        The day on which PyPI got its first NVRTC.
    """

    name: str
    packages: Mapping[str, str]
    borrowed: Mapping[str, str] = field(default_factory=dict)
    day: date = date.min


def _read() -> dict[str, Release]:
    table = read_table("toolkits/releases.toml")
    releases = {}
    for name in sorted(table, key=Version):
        major = name.split(".")[0]
        suffix = f"-cu{major}" if int(major) < 13 else ""
        borrowed = table[name].pop("borrowed", {})
        day = table[name].pop("date")
        releases[name] = Release(
            name=name,
            packages={f"nvidia-{wheel}{suffix}": version for wheel, version in table[name].items()},
            borrowed={f"nvidia-{wheel}{suffix}": release for wheel, release in borrowed.items()},
            day=day,
        )
    return releases


RELEASES: Mapping[str, Release] = _read()
"""Every release by name, oldest first."""


def parse_toolkits(text: str) -> list[ToolkitRef]:
    """Read ``11.8,12.4..13.0``, ``all``, or ``13.5+headers13.0`` for headers of another release.

    A major version alone is its newest release (``13``), and at the end of a range all of them (``12.4..13``). ``local`` stands for every CUDA toolkit that this machine has already (`harness.toolkits.local.find_local`),
    ``12.4@local`` for one of them, and a path for the one there.

    Raises
    ------
    UsageError
        On a release that is not known; a range may span unknown ones, but not be empty.
    """
    found: dict[ToolkitRef, None] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        release, _, headers = part.partition("+headers")
        refs = _refs(release)
        if headers:
            refs = [replace(ref, headers=_known(headers)) for ref in refs]
        found.update(dict.fromkeys(refs))
    if not found:
        raise UsageError(f"{text!r} names no CUDA release; known are {', '.join(RELEASES)}")
    return list(found)


def release_of(day: date, majors: Iterable[int], newest: str) -> str:
    """The newest CUDA release of some majors that was out on a day, up to `newest`; the first one where none was.

    Parameters
    ----------
    day : date
        The day.
    majors : iterable of int
        Major releases to choose from; of all where there are none.
    newest : str
        A release.
    """
    wanted = {str(major) for major in majors}
    fitting = [name for name in RELEASES if not wanted or name.split(".")[0] in wanted]
    out = [name for name in fitting if RELEASES[name].day <= day and Version(name) <= Version(newest)]
    return (out or fitting)[-1 if out else 0]


def _refs(part: str) -> list[ToolkitRef]:
    if part == "local" or part.endswith("@local") or os.sep in part:
        return _local(part)
    if part == "all":
        names = list(RELEASES)
    elif ".." in part:
        low, _, high = part.partition("..")
        first, last = _number(low), _number(high)
        names = [
            name
            for name in RELEASES
            if first <= Version(name) <= last or (name in _major(high) and first <= Version(name))
        ]
        if not names:
            raise UsageError(f"no CUDA release lies in {part}; known are {', '.join(RELEASES)}")
    else:
        names = [_known(part)]
    return [ToolkitRef(release=name, headers=name) for name in names]


def _local(part: str) -> list[ToolkitRef]:
    if os.sep in part:
        toolkit = local_toolkit(Path(part).expanduser())
        homes = {toolkit.release: toolkit.home}
    else:
        homes = find_local()
        wanted = part.removesuffix("@local") if part != "local" else ""
        if wanted and wanted not in homes:
            raise UsageError(f"this machine has no CUDA {wanted}; it has {', '.join(homes) or 'none'}")
        homes = {wanted: homes[wanted]} if wanted else homes
    if not homes:
        raise UsageError("this machine has no CUDA toolkit: set CUDA_HOME, or name its folder")
    return [ToolkitRef(release=name, headers=name, home=str(home), local=True) for name, home in homes.items()]


def _known(name: str) -> str:
    if name in RELEASES:
        return name
    if _major(name):
        return _major(name)[-1]
    raise UsageError(f"unknown CUDA release {name!r}{did_you_mean(name, RELEASES)}")


def _major(text: str) -> list[str]:
    """Releases of a major version that is named alone, oldest first."""
    return [name for name in RELEASES if name.split(".")[0] == text]


def _number(text: str) -> Version:
    try:
        return Version(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a CUDA release such as 12.4") from None
