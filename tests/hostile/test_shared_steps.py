"""A compiler of nvcc that attacks the finished steps of other cases: it can change only those of its own case."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import Place, make_case, run_all

from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.toolkits import Installed
from harness.worker import sandbox

pytestmark = [
    pytest.mark.compilers,
    pytest.mark.skipif(
        sandbox.version() < 2 or not sandbox.broker_available(), reason="this kernel keeps cells from neither"
    ),
]
KERNEL = "__global__ void k(int *a) {{ *a = {}; }}\n"
HOSTILE = """#!/bin/sh
for folder in "$TMPDIR"/../../cumatrix-run-*/????????????????????????????????????????????????????????????????; do
    if touch "$folder/intruder" 2>/dev/null; then echo "warning: reached a folder"; else echo "warning: refused a folder"; fi
    for lock in "$folder"/*.lock; do
        if flock --nonblock "$lock" true 2>/dev/null; then echo "warning: reached a lock"; else echo "warning: refused a lock"; fi
    done
done >&2
exec g++ "$@"
"""


def test_only_those_of_its_own_case_are_reached(
    places: Callable[[str], Place], toolkit: Callable[[str], Installed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolkit("13.0")
    place = places("")
    (compiler := tmp_path / "g++").write_text(HOSTILE)
    compiler.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def cell(name: str, **options: object) -> Cell:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.cu").write_text(KERNEL.format(len(name)))
        return place.cell(make_case(tmp_path / name / "kernel.cu", name, options=options), "nvcc", "13.0", "sm_80")

    cells = [cell("innocent"), cell("hostile", flags=[f"-ccbin={compiler}"])]
    records = run_all(cells, RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=300))))
    innocent, hostile = (records[each.id] for each in cells)
    assert (innocent["status"], hostile["status"]) == ("built", "built"), (innocent["log"], hostile["log"])
    for what in ("folder", "lock"):
        assert f"refused a {what}" in hostile["log"] and f"reached a {what}" in hostile["log"]
