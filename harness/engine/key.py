"""Content keys: everything that can change an outcome, and nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import harness

# Raise it when the meaning of a key's fields changes.
_SCHEMA = 1
_INCLUDE = re.compile(
    rb"#\s*(?:include|include_next|embed)\s*([<\"])([^>\"\n]+)[>\"]|__has_include\s*\(\s*([<\"])([^>\"\n]+)[>\"]"
)
_COMPUTED = re.compile(rb"#\s*include\s+[A-Za-z_]")
_ENGINE_FOLDERS = ("worker", "backends", "diagnostics", "artifacts", "engine")


class Key:
    """A hash over labelled, length-prefixed fields, so that no two different sets of fields look the same."""

    def __init__(self, kind: str) -> None:
        self._hash = hashlib.sha256()
        self.add("kind", kind).add("schema", _SCHEMA).add("engine", engine_digest()).add("machine", platform.machine())

    def add(self, label: str, value: Any) -> Key:
        """Add one field; `value` is anything that JSON can hold."""
        for part in (label.encode(), json.dumps(value, sort_keys=True).encode()):
            self._hash.update(len(part).to_bytes(8, "big") + part)
        return self

    def hex(self) -> str:
        """The key."""
        return self._hash.hexdigest()


@cache
def engine_digest() -> str:
    """Hash over the modules that make an outcome out of a cell."""
    digest, root = hashlib.sha256(), Path(harness.__file__).parent
    for folder in _ENGINE_FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".c"):
                data = path.read_bytes()
                digest.update(f"{path.relative_to(root)}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def source_digest(source: Path, folders: Sequence[Path]) -> str:
    """Hash over a program and all that it includes from `folders` and from beside itself.

    Which branch of a condition the preprocessor takes is not asked: what might be included counts. Headers of the
    toolkit are in the toolkit's own fingerprint.
    """
    digest, waiting, seen = hashlib.sha256(), [source], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        data = path.read_bytes()
        digest.update(f"{len(data)}\0".encode() + data)
        for match in _INCLUDE.finditer(data):
            name = (match[2] or match[4]).decode(errors="replace")
            found = _resolve(name, [path.parent, source.parent, *folders])
            digest.update(f"{name}\0{found is not None}\0".encode())
            if found:
                waiting.append(found)
        if _COMPUTED.search(data):  # the name is a macro's: anything within reach may be meant
            waiting += sorted(p.resolve() for folder in folders for p in folder.rglob("*.*h*") if p.is_file())
    return digest.hexdigest()


def _resolve(name: str, folders: Sequence[Path]) -> Path | None:
    for folder in folders:
        path = folder / name
        if path.is_file():
            return path.resolve()
    return None
