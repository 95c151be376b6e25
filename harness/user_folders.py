"""The user's folders: cache, data and configuration."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$CUMATRIX_CACHE``, or the folder in the user's cache folder."""
    named = os.environ.get("CUMATRIX_CACHE")
    return Path(named).expanduser() if named else users("XDG_CACHE_HOME", "~/.cache")


def users(variable: str, default: str) -> Path:
    """cumatrix's folder in one of the user's base directories (https://specifications.freedesktop.org/basedir), where a relative path counts as none."""
    named = os.environ.get(variable, "")
    return Path(named if os.path.isabs(named) else default).expanduser() / "cumatrix"
