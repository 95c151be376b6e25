"""Output that a quadratic reader would read for hours, together with an innocent cell: it is read in normal time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cells import Place, lasting, make_case, run_all

from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.toolkits import Installed

from .programs import ENTRIES, KERNEL, OUTPUT, text_of
from .texts import TEXTS

pytestmark = pytest.mark.compilers

RELEASE = "12.9"
HOSTILE = ("assembly-of-blank-lines", "assembly-of-entries")
INNOCENT = 'extern "C" __global__ void k(int *a) { *a = 2; }\n'


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["nvrtc", "numba"])
def test_it_costs_one_cell(
    backend: str, places: Callable[[str], Place], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit(RELEASE)
    place = places("numba==0.59.1" if backend == "numba" else "")

    def cell(name: str, text: str) -> Cell:
        path = tmp_path / name / ("kernel.py" if backend == "numba" else "kernel.cu")
        path.parent.mkdir()
        path.write_text(text)
        entries = ENTRIES if backend == "numba" else {"k": ""}
        return place.cell(make_case(path, name, entries=entries), backend, RELEASE, "compute_80")

    python = backend == "numba"
    hostile = [cell(name, text_of(OUTPUT[f"numba-{name}"], {}) if python else str(TEXTS[name])) for name in HOSTILE]
    neighbour = cell("innocent", KERNEL.format(1) if python else INNOCENT)
    context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=120)))
    alone = run_all([neighbour], context)
    records = run_all([*hostile, neighbour], context)
    assert lasting(records[neighbour.id]) == lasting(alone[neighbour.id])
    for each in hostile:
        record = records[each.id]
        assert record["status"] == "built" and record["artifact"], (record["reason"], record["log"])
        assert len(record["artifact"]["kernels"]) == 1
        assert record["artifact"]["bytes"] > 60_000
