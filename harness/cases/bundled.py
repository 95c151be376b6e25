"""Cumatrix's own cases: the folder that this installation has, digests of what their cells follow from, and copies of them."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import harness
from harness.tables import read_table

_SAID = frozenset(("title", "description", "features", "links", "heavy", "kernels", "expect", "verify"))
"""Keys of ``case.toml`` that no compiler's outcome depends on."""

_LENGTH = 16


@cache
def packaged_cases() -> Path:
    """The bundled cases of this installation: inside the package in a wheel, next to it in a checkout."""
    package = Path(harness.__file__).resolve().parent
    inside = package / "case_library"
    return inside if inside.is_dir() else package.parent / "cases"


def is_copy(folder: Path, name: str) -> bool:
    """Return whether a folder has cumatrix's own case of that name, or a copy of it with the same cells.

    Parameters
    ----------
    folder : Path
        The case's, with a ``case.toml`` that can be read.
    name : str
        ``wmma/fragments``.
    """
    own = packaged_cases() / name
    if not (own / "case.toml").is_file():
        return False
    try:
        return folder.resolve() == own or _files(folder) == _files(own) or digest_of(folder) == digest_of(own)
    except (OSError, ValueError):
        return False  # errors are reported when the case is loaded


def digest_of(folder: Path) -> str:
    """Digest of the case in a folder: of its files, and of ``case.toml`` without titles and expectations.

    Parameters
    ----------
    folder : Path
        The case's, with a ``case.toml`` that can be read.
    """
    digest = hashlib.sha256()
    for name, data in _files(folder).items():
        if name == "case.toml":
            table = tomllib.loads(data.decode())
            kept = {key: value for key, value in table.items() if key not in _SAID}
            counts = json.dumps(kept, sort_keys=True, default=str).encode()
        else:
            counts = data
        digest.update(f"{name}\0{len(counts)}\0".encode() + counts)
    return digest.hexdigest()[:_LENGTH]


def _files(folder: Path) -> dict[str, bytes]:
    """Contents of the files below a folder, without those of Python and editors."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith((".", "__pycache__")) for part in name.parts):
            found[str(name)] = path.read_bytes()
    return found


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its folder's name, its title, and one line about it."""

    name: str
    title: str
    about: str


@cache
def library_topics() -> Mapping[str, Topic]:
    """Topics of the library by name."""
    return {table["name"]: Topic(**table) for table in read_table("cases/topics.toml")["topic"]}


def topic_rank(name: str) -> int:
    """Place of a topic in lists; other topics come after those of the library."""
    known = list(library_topics())
    return known.index(name) if name in library_topics() else len(known)


_THREAD = re.compile(r"/(issues|pull|discussions)/\d+")


def case_rank(topic: str, links: Iterable[str]) -> tuple[int, str, int]:
    """Place of a case in lists: topic by topic, and within a topic the cases with the most upstream threads among their links first."""
    threads = {link.partition("#")[0] for link in links if _THREAD.search(link)}
    return topic_rank(topic), topic, -len(threads)
