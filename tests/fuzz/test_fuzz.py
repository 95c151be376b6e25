"""What is damaged never breaks a command: success, or one sentence. ``python tests/fuzz/fuzz.py`` goes on for longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzzing import KINDS, Fuzzer, problems

FEW = {
    "records": 10,
    "plan": 6,
    "exported": 10,
    "history": 10,
    "cases": 60,
    "conditions": 1500,
    "logs": 15,
    "replies": 300,
    "configuration": 10,
    "build": 15,
    "setup": 40,
    "others": 4,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_few(tmp_path: Path, kind: str) -> None:
    found = problems(Fuzzer(tmp_path, seed=f"suite {kind}"), kind, lambda number: number < FEW[kind])
    assert found == [], "\n\n".join(found)
