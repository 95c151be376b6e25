"""A local index, isolated from other settings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .local_index import LocalIndex


@pytest.fixture
def index(tmp_path: Path) -> LocalIndex:
    """An empty index that is not configured yet."""
    return LocalIndex(tmp_path / "index")


@pytest.fixture
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use only the machine's settings of pip and uv, and an empty cache; return the folder for the user's settings (XDG_CONFIG_HOME)."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    return folder
