"""Cells that were compiled, and the questions that they answer."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.answers.cells import Known
from harness.answers.question import Vocabulary
from harness.answers.store import Store, read_known, vocabulary_of

CELLS = Path(__file__).parent / "cells.parquet"
"""2,400 records of CUDA 11.7 to 13.5, CuPy 12.3 to 14.2 and Numba 0.58 to 0.68, without logs, commands and artifacts."""

EXAMPLES: dict[str, list[dict[str, Any]]] = tomllib.loads((Path(__file__).parent / "questions.toml").read_text())


@pytest.fixture(scope="session")
def known() -> Known:
    return read_known([CELLS])


@pytest.fixture(scope="session")
def vocabulary(known: Known) -> Vocabulary:
    return vocabulary_of(Store.of(known))
