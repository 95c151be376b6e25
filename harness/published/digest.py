"""Digests of cases: what their cells follow from, and not what is expected of them or how they are called."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

from harness.cases.select import find_cases

_SAID = frozenset(("title", "description", "features", "links", "heavy", "expect", "verify"))
"""Keys of ``case.toml`` from which no outcome of a compiler follows."""

_LENGTH = 16


def digest_of(folder: Path) -> str:
    """Digest of the case in a folder: of its files, and of ``case.toml`` without titles and expectations.

    Parameters
    ----------
    folder : Path
        The case's, with a ``case.toml`` that can be read.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if any(part.startswith((".", "__pycache__")) for part in name.parts):
            continue
        data = path.read_bytes()
        if str(name) == "case.toml":
            table = tomllib.loads(data.decode())
            kept = {key: value for key, value in table.items() if key not in _SAID}
            data = json.dumps(kept, sort_keys=True, default=str).encode()
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:_LENGTH]


def digests_of(cases: Path) -> dict[str, str]:
    """Digest by case, of a folder of cases; none where there is none."""
    if not cases.is_dir():
        return {}
    return {str(path.parent.relative_to(cases)): digest_of(path.parent) for path in find_cases(cases)}
