"""Damaged input never breaks a command: success, or one sentence. ``python tests/fuzz/fuzz.py`` runs for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import KINDS, Fuzzer, problems

FEW = {
    "records": 4,
    "plan": 3,
    "exported": 4,
    "history": 3,
    "cases": 30,
    "conditions": 800,
    "logs": 15,
    "replies": 150,
    "configuration": 5,
    "build": 8,
    "setup": 20,
    "others": 4,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_few(tmp_path: Path, kind: str) -> None:
    found = problems(Fuzzer(tmp_path, seed=f"suite {kind}"), kind, lambda number: number < FEW[kind])
    assert found == [], "\n\n".join(found)
