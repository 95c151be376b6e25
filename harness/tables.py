"""Bundled TOML tables, and the user's cache, data and configuration folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """The content of a table.

    Parameters
    ----------
    name : str
        Its file, as seen from the package: ``toolkits/releases.toml``.
    """
    import tomllib  # imported late: help and lists of cases do not read tables

    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))


def cache_folder() -> Path:
    """``$CUMATRIX_CACHE``, or the folder in the user's cache folder."""
    named = os.environ.get("CUMATRIX_CACHE")
    return Path(named).expanduser() if named else users("XDG_CACHE_HOME", "~/.cache")


def users(variable: str, default: str) -> Path:
    """cumatrix's folder in one of the user's base directories (https://specifications.freedesktop.org/basedir), where a relative path counts as none."""
    named = os.environ.get(variable, "")
    return Path(named if os.path.isabs(named) else default).expanduser() / "cumatrix"
