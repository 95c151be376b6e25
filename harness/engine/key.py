"""Keys: hashes of what was asked. What is read when it is answered comes in with `harness.engine.fingerprints`."""

from __future__ import annotations

import hashlib
import json
import platform
from functools import cache
from pathlib import Path
from typing import Any

import orjson

import harness

# Raise it when the meaning of a key's fields changes.
_SCHEMA = 4
# For what orjson does not take: a lone surrogate in the name of a file, a number of more than 64 bits.
_JSON = json.JSONEncoder(sort_keys=True).encode
_ENGINE_FOLDERS = ("protocol", "native", "nvidia", "backends", "worker", "diagnostics", "artifacts", "engine")


class Key:
    """A hash over labelled, length-prefixed fields, so that no two different sets of fields look the same."""

    def __init__(self, kind: str) -> None:
        self._hash = _begun(kind, engine_digest()).copy()

    def copy(self) -> Key:
        """Another one that begins with the same fields."""
        other = Key.__new__(Key)
        other._hash = self._hash.copy()
        return other

    def add(self, label: str, value: Any) -> Key:
        """Add one field; `value` is anything that JSON can hold."""
        _add(self._hash, label, value)
        return self

    def hex(self) -> str:
        """The key."""
        return self._hash.hexdigest()


@cache
def _begun(kind: str, engine: str) -> hashlib._Hash:
    """The beginning of all keys of a kind."""
    begun = hashlib.sha256()
    for label, value in (("kind", kind), ("schema", _SCHEMA), ("engine", engine), ("machine", platform.machine())):
        _add(begun, label, value)
    return begun


def _add(to: hashlib._Hash, label: str, value: Any) -> None:
    name = label.encode()
    try:
        part = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        part = _JSON(value).encode()
    to.update(b"%b%b%b%b" % (len(name).to_bytes(8, "big"), name, len(part).to_bytes(8, "big"), part))


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
