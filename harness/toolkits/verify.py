"""Whether what is installed is still what was installed, and whether that was what cumatrix knows."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.toolkits.installed import MANIFEST, Installed
from harness.toolkits.parts import PARTS
from harness.toolkits.releases import RELEASES
from harness.toolkits.wheels import pinned

_NAMED = 5


def problems(installed: Installed) -> list[str]:
    """What differs from the wheels that a toolkit or a library was made of, each in a few words; empty where nothing does.

    Every file is read again and held against the hash that its wheel has for it; what stands beside them is named, and links that lead elsewhere.
    The hash of each wheel is held against the pinned one.
    """
    return [*_files(installed), *_wheels(installed)]


def not_pinned(installed: Installed) -> list[str]:
    """Wheels of it that cumatrix does not know: their hash is what the index said when they were installed."""
    found = installed.packages.items()
    return [f"{name} {version}" for name, version in found if pinned(name, version) is None]


def _wheels(installed: Installed) -> Iterator[str]:
    if not isinstance(installed.wheels, dict) or installed.wheels.keys() != dict(installed.packages).keys():
        yield "the hashes of its wheels are not known: it was installed before they were kept"
        return
    meant = _versions(installed)
    for name, version in installed.packages.items():
        if meant.get(name, version) != version:
            yield f"{MANIFEST} says {name} {version}, where {installed.what} has {meant[name]}"
            continue
        known = pinned(name, version)
        if known is not None and installed.wheels[name] not in known:
            yield f"the wheel of {name} {version} had the SHA-256 {installed.wheels[name]}, and should have {' or '.join(sorted(known))}"


def _versions(installed: Installed) -> dict[str, str]:
    """The wheels of a CUDA release and of its parts, as cumatrix knows them."""
    release = installed.release
    if installed.library or release not in RELEASES:
        return {}
    return {
        **dict(part.wheels[release] for part in PARTS.values() if release in part.wheels),
        **RELEASES[release].packages,
    }


def _files(installed: Installed) -> Iterator[str]:
    try:
        manifest = json.loads((installed.home / MANIFEST).read_text("utf-8"))
        recorded = {str(name): str(entry[0]) for name, entry in manifest["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        yield f"{MANIFEST} cannot be read ({error})"
        return
    there, links = _listed(installed.home)
    yield from _some("missing", sorted(recorded.keys() - there))
    yield from _some(
        "changed", [name for name in sorted(recorded.keys() & there) if _hash(installed.home / name) != recorded[name]]
    )
    yield from _some("not of any wheel", sorted(there - recorded.keys() - {MANIFEST}))
    yield from _some("linked to another place", links)


def _listed(home: Path) -> tuple[set[str], list[str]]:
    """Files below a folder, without links; and links that lead out of it or nowhere."""
    there, links = set(), []
    for folder, folders, names in os.walk(home):
        for name in [*folders, *names]:
            path = Path(folder, name)
            below = path.relative_to(home).as_posix()
            if path.is_symlink():
                if not path.exists() or not path.resolve().is_relative_to(home):
                    links.append(below)
            elif name in names:
                there.add(below)
    return there, sorted(links)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _some(word: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{word}: {', '.join(names[:_NAMED])}{more}"
