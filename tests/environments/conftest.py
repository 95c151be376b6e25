"""A local index with releases of a library under test, isolated from other settings."""

from __future__ import annotations

from pathlib import Path

import pytest
from toolkits.conftest import index, no_settings
from toolkits.local_index import LocalIndex

from harness.environments.index import Index

__all__ = ["index", "no_settings"]


@pytest.fixture
def numbas(index: LocalIndex, no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> LocalIndex:
    """An index with three releases of a fake numba, and the NumPy that they require."""
    for version in ("0.58.1", "0.59.0", "0.59.1"):
        index.add(
            "numba", version, {"numba/__init__.py": f"__version__ = '{version}'\n"},
            metadata=True, more=True, requires=["numpy"],
        )  # fmt: skip
    for version in ("1.26.4", "1.27.0"):
        index.add("numpy", version, {"numpy/__init__.py": ""}, metadata=True, more=True)
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return index


@pytest.fixture
def asked(numbas: LocalIndex, tmp_path: Path) -> Index:
    """The index as cumatrix queries it."""
    return Index(tmp_path / "answers")
