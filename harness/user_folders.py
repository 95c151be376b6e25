"""The folders of the user's in which cumatrix keeps things, and small files of JSON in the one for what it can make again."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from harness.protocol.process_output import Unreadable, read_plain

_MOST = 64 << 20  # bytes


def cache_folder() -> Path:
    """What the user names (``CUMATRIX_CACHE``), or the cache folder of the user's."""
    named = os.environ.get("CUMATRIX_CACHE")
    return Path(named).expanduser() if named else users("XDG_CACHE_HOME", "~/.cache")


def users(variable: str, default: str) -> Path:
    """cumatrix's folder in one of the user's base directories (https://specifications.freedesktop.org/basedir), where a relative path counts as none."""
    named = os.environ.get(variable, "")
    return Path(named if os.path.isabs(named) else default).expanduser() / "cumatrix"


def read_kept(name: str) -> dict[str, Any]:
    """What was kept under a name; empty where nothing is, or what cannot be read, or is another user's."""
    path = cache_folder() / name
    try:
        if path.stat().st_uid != os.geteuid():
            return {}
        value = json.loads(read_plain(path, _MOST))
    except (OSError, ValueError, RecursionError, Unreadable):
        return {}
    return value if isinstance(value, dict) else {}


def keep(name: str, value: dict[str, Any]) -> None:
    """Keep it in the place of what was kept before: whole, or not at all. A folder that cannot be written costs time, and is no error."""
    import tempfile  # most of the time nothing is kept

    path = cache_folder() / name
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with open(handle, "w", encoding="ascii") as file:
            json.dump(value, file, separators=(",", ":"))
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
