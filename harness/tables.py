"""Bundled TOML tables, and the user's cache, data and configuration folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """Read a bundled table.

    Parameters
    ----------
    name : str
        Path of the file relative to the package: ``toolkits/releases.toml``.
    """
    import tomllib  # imported late: help and lists of cases do not read tables

    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))


def cache_folder() -> Path:
    """Return ``$CUMATRIX_CACHE``, or cumatrix's folder in the user's cache folder."""
    named = os.environ.get("CUMATRIX_CACHE")
    return Path(named).expanduser() if named else users("XDG_CACHE_HOME", "~/.cache")


def users(variable: str, default: str) -> Path:
    """Return cumatrix's folder in one of the user's base directories.

    A relative path in `variable` is ignored (https://specifications.freedesktop.org/basedir).
    """
    named = os.environ.get(variable, "")
    return Path(named if os.path.isabs(named) else default).expanduser() / "cumatrix"
