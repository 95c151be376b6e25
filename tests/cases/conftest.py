"""A folder of cases for invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from harness.cases.load import load_case
from harness.cases.toml import CaseError
from harness.model import Case


class Write(Protocol):
    """Writer of a case with a text, and of its sources; it returns the ``case.toml``."""

    def __call__(self, text: str | bytes = ..., name: str = ...) -> Path: ...


class Load(Protocol):
    """Load a case with this text."""

    def __call__(self, text: str | bytes = ..., name: str = ...) -> Case: ...


Wrong = Callable[[str | bytes], list[str]]

GOOD = """\
title = "A case"

[source]
cuda = "kernel.cu"

[entry]
cuda = ["scale"]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "cases"
    folder.mkdir()
    return folder


@pytest.fixture
def write(root: Path) -> Write:
    """Write a case with a CUDA and a Python source; returns its ``case.toml``."""

    def write(text: str | bytes = GOOD, name: str = "topic/some") -> Path:
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.cu").write_text('extern "C" __global__ void scale() {}\n')
        (folder / "kernel.py").write_text("def scale(): pass\n")
        path = folder / "case.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def load(root: Path, write: Write) -> Load:
    """Load a case with this text."""
    return lambda text=GOOD, name="topic/some": load_case(write(text, name), root)


@pytest.fixture
def wrong(load: Load) -> Wrong:
    """Return the errors of a case with this text."""

    def wrong(text: str | bytes) -> list[str]:
        with pytest.raises(CaseError) as caught:
            load(text)
        assert caught.value.exit_code == 2
        return str(caught.value).splitlines()

    return wrong
