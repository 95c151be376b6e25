"""Replies and errors of interpreters, with fake interpreters whose replies are invalid."""

from __future__ import annotations

from pathlib import Path

import pytest
from peaks import peak_of

from harness.engine.environment import ProbeFailed, ask
from harness.protocol.messages import Interpreter

MUCH = 100 << 20


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"head -c {MUCH} /dev/zero", f"it printed {MUCH} bytes"),
        (f"head -c {MUCH} /dev/zero >&2; echo the end >&2; exit 3", "its process ended with exit code 3: .*the end"),
        (f"head -c {MUCH} /dev/zero | tr '\\0' '['", f"it printed {MUCH} bytes"),
        ("kill -9 $$", "signal 9"),
        ("echo '{}'", "Interpreter: "),
        ("", "."),
    ],
    ids=["floods", "floods with errors", "nests", "is killed", "says too little", "says nothing"],
)
def test_what_is_no_answer_is_a_sentence_of_bounded_size(tmp_path: Path, script: str, words: str) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)

    def asking() -> None:
        with pytest.raises(ProbeFailed, match=words) as caught:
            ask(str(fake), "probe.py", [], Interpreter, without="PYTHONPATH")
        assert len(str(caught.value)) < 1000

    assert peak_of(asking) < MUCH // 5
