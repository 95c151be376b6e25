"""Jitify's table of headers, built if no other run has built it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.backends.cupy import headers
from harness.protocol.backend import Setup
from harness.toolkits import Installed

ROOT = Path(__file__).parents[2]
PREPARE = """
import sys
from pathlib import Path
from harness.backends.cupy.backend import CupyBackend
from harness.protocol.backend import Setup

home, tools = map(Path, sys.argv[1:])
setup = Setup(home=home, release="12.9", headers="12.9", include=[str(home / "include")], tools=tools)
CupyBackend(jitify=True).prepare(setup)
"""


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.timeout(400)
def test_it_is_made_whole(venv: Callable[..., str], toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    """A failure in the child that builds the table costs each cell a minute, and no more."""
    home = toolkit("12.9").home
    done = subprocess.run(
        [venv("cupy-cuda12x==13.6.0"), "-c", PREPARE, str(home), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_PATH": str(home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    (kept,) = tmp_path.glob("jitify/*.json")
    found = json.loads(kept.read_text())
    assert found["left"] == []
    assert len(found["table"]) > 300


class FakeJitify:
    """Fake ``cupy.cuda.jitify`` that finds no header."""

    def __init__(self) -> None:
        self.table: dict[bytes, bytes] = {}
        self._add_sources = self.table.update

    def jitify(self, *arguments: object) -> None:
        """No program uses it."""


@pytest.mark.parametrize("made", [False, True])
def test_where_it_cannot_be_made_each_cell_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], made: bool
) -> None:
    def attempt(source: str) -> None:
        if source and not made:
            raise OSError("the fake finds nothing")

    setup = Setup(home=tmp_path, release="12.9", headers="12.9", include=[str(tmp_path)], tools=tmp_path / "tools")
    table, remarks = headers.warm(setup, FakeJitify(), ["a fake"], attempt)
    assert table == {}
    assert [remark.startswith("Jitify's headers could not all be found") for remark in remarks] == [True] * (not made)
    assert ("the fake finds nothing" in capfd.readouterr().err) == (not made)
