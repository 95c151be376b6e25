"""Wheels from the index that the user has configured, by uv, each held against its SHA-256."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.tags import sys_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from harness.errors import PartUnavailable
from harness.toolkits.index import index_called
from harness.toolkits.uv_process import run_uv
from harness.toolkits.wheels import pinned


@dataclass(frozen=True)
class Wheel:
    """A wheel that an index offers.

    Parameters
    ----------
    name, version : str
        As they were asked for.
    sha256 : str
        What the index says of it, in hexadecimal digits; empty where it says nothing.
    host : str
        Where it comes from, for messages.
    """

    name: str
    version: str
    sha256: str
    host: str

    @property
    def known(self) -> bool:
        """Whether cumatrix has the version's hash pinned."""
        return pinned(self.name, self.version) is not None


def choose(what: str, wanted: Mapping[str, str], folder: Path) -> list[Wheel]:
    """Ask the index for the wheels of some exact versions.

    Parameters
    ----------
    what : str
        ``CUDA 12.4``, for messages.
    wanted : Mapping[str, str]
        Version by the full name of the wheel.
    folder : Path
        A folder to work in.

    Raises
    ------
    PartUnavailable
        When a wheel cannot be had, has another hash than the pinned one, or none at all.
    """
    lines = "".join(f"{name}=={version}\n" for name, version in wanted.items())
    requirements = folder / "requirements.in"
    requirements.write_text(lines, "utf-8")
    output = _uv(
        what, ["compile", "--no-header", "--no-annotate", "--format", "pylock.toml", str(requirements)], folder
    )
    packages = {item["name"]: item for item in tomllib.loads(output).get("packages", ())}
    return [_choose(what, name, version, packages.get(name, {})) for name, version in wanted.items()]


def unpack(what: str, wheels: Sequence[Wheel], site: Path, folder: Path) -> None:
    """Download wheels and unpack them into `site`; see `choose`.

    Raises
    ------
    PartUnavailable
        When one cannot be had, or is not the one that the index has told of.
    """
    requirements = folder / "requirements.txt"
    requirements.write_text("".join(f"{w.name}=={w.version} --hash=sha256:{w.sha256}\n" for w in wheels), "utf-8")
    # A copy, so that a file changed in a toolkit stays out of uv's cache and of other toolkits.
    words = ["install", "--require-hashes", "--link-mode", "copy", "--target", str(site), "-r", str(requirements)]
    _uv(what, words, folder)


def lock(what: str, lines: Sequence[str], folder: Path, *, deps: bool, python: str = "") -> str:
    """Exact versions with the hashes of all their wheels, as a file of requirements has them.

    Parameters
    ----------
    what : str
        What they are for, for messages.
    lines : sequence of str
        Requirements.
    folder : Path
        A folder to work in.
    deps : bool
        Whether what they need is resolved as well.
    python : str
        The Python that they are for, as ``3.11``; this one where it is empty.

    Raises
    ------
    PartUnavailable
        When there is no answer, or one cannot be had.
    """
    requirements = folder / "requirements.in"
    requirements.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    words = ["compile", "--generate-hashes", "--no-header", "--no-annotate", str(requirements)]
    words += ["--python-version", python] if python else []
    return _uv(what, words, folder, deps=deps)


def _choose(what: str, name: str, version: str, package: Mapping[str, Any]) -> Wheel:
    ranks = {tag: rank for rank, tag in enumerate(sys_tags())}
    found = []
    for item in package.get("wheels", ()):
        address = item.get("url") or item.get("path") or ""
        try:
            tags = parse_wheel_filename(unquote(address.rsplit("/", 1)[-1]))[3]
        except InvalidWheelFilename:
            continue
        rank = min((ranks[tag] for tag in tags if tag in ranks), default=None)
        if rank is not None:
            found.append((rank, Wheel(name, version, item.get("hashes", {}).get("sha256", ""), _host(address))))
    if not found:
        raise PartUnavailable(
            f"{what} cannot be installed from {index_called()}: it has no wheel of {name} {version} for this machine"
        )
    known = pinned(name, version)
    right = [(rank, wheel) for rank, wheel in found if wheel.sha256 in known] if known is not None else found
    if known is not None and not right:
        wheel = min(found, key=lambda pair: pair[0])[1]
        raise PartUnavailable(
            f"{what} is not installed: the wheel of {name} {version} at {wheel.host} is not the one that cumatrix knows. "
            f"Its SHA-256 is {wheel.sha256 or 'not told'}, and should be {' or '.join(sorted(known)) or 'none: there was no wheel for this machine'}. "
            "Find out who changed it, or take another index"
        )
    wheel = min(right, key=lambda pair: pair[0])[1]
    if not wheel.sha256:
        raise PartUnavailable(f"{what} is not installed: {wheel.host} tells no SHA-256 of {name} {version}")
    return wheel


def _host(address: str) -> str:
    parts = urlsplit(address)
    return parts.hostname or os.path.dirname(unquote(parts.path)) or "the index"


def _uv(what: str, words: Sequence[str], folder: Path, *, deps: bool = False) -> str:
    """Run ``uv pip`` on wheels, which are never built here, and bring nothing along without `deps`."""
    common = ["--only-binary", ":all:", "--python", sys.executable, *([] if deps else ["--no-deps"])]
    return run_uv(what, ["pip", *words, *common], folder)
