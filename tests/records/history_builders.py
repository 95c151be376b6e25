"""A history, night by night, for the tests of histories and trends."""

from __future__ import annotations

from record_builders import cell, plan, record

from harness.analysis.history import append

CELLS = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90")]


def night(folder, day, *outcomes, run=None, key="k", cells=CELLS, **fields):
    """Add the run of one night."""
    run = run or f"run-{day}"
    records = [
        {**record(of, outcome, run=run), "fingerprint": key}
        for of, outcome in zip(cells, outcomes, strict=False)
        if outcome is not None
    ]
    append(folder, records, [plan(*cells, run=run, day=day, **fields)])
    return run
