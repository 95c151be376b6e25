"""A fake driver, for our own code's reaction to errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import native


@pytest.fixture(scope="session")
def fake_driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a fake ``libcuda.so.1``."""
    source = Path(__file__).with_name("fake_libcuda.c").read_text()
    library = native.build(tmp_path_factory.mktemp("fake"), "libcuda.so.1", source, ["-D_GNU_SOURCE"])
    return library.parent
