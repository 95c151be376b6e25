"""Statements of a history: breaks, unstable cells, and the development of environments."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_builders import CELLS, night
from record_builders import built, rejected

from harness.analysis.history import History, breaks, cell_history, read_history, trend, unsteady
from harness.model import Outcome, Status

UNAVAILABLE = Outcome(status=Status.UNAVAILABLE, reason="not there")


@pytest.fixture
def nights(tmp_path: Path) -> History:
    """Four nights: sm_75 breaks in the third, sm_80 was never good and is unavailable in the last, sm_90 blinks."""
    night(tmp_path, 1, built("sm_75"), rejected(), built("sm_90"))
    night(tmp_path, 2, built("sm_75"), rejected(), rejected())
    night(tmp_path, 3, rejected(), rejected(), built("sm_90"))
    night(tmp_path, 4, rejected(), UNAVAILABLE, built("sm_90"), key="other")
    return read_history(tmp_path)


def test_breaks(nights: History) -> None:
    found = breaks(nights)
    assert [(item.cell, item.last_good, item.first_bad, item.runs) for item in found] == [
        (CELLS[0].id, "run-2", "run-3", 2),
        (CELLS[1].id, None, "run-1", 3),
    ]
    assert found[0].since == "2026-01-03T12:00:00.000+00:00"


def test_unsteady(nights: History) -> None:
    found = unsteady(nights)
    # sm_75 broke under the same content key too, but only chance can do that: it counts as flaky.
    assert [(item.cell, item.flaky, item.switches) for item in found] == [
        (CELLS[2].id, True, 2),
        (CELLS[0].id, True, 1),
    ]
    assert found[0].outcomes == ("built", "rejected at compile")


def test_history_of_a_cell(nights: History) -> None:
    events = cell_history(nights, CELLS[0].id)
    assert [(event.run, event.outcome, event.changed) for event in events] == [
        ("run-1", "built", False),
        ("run-2", "built", False),
        ("run-3", "rejected at compile", True),
        ("run-4", "rejected at compile", False),
    ]
    assert events[2].registers is None
    assert cell_history(nights, "nothing") == ()


def test_trend(nights: History) -> None:
    rows = trend(nights)
    assert list(rows["run"]) == ["run-1", "run-2", "run-3", "run-4"]
    assert list(rows["built"]) == [2, 1, 1, 1]
    assert list(rows["bad"]) == [1, 2, 2, 2]
    assert set(rows["environment"]) == {"cupy13"}


def test_of_nothing(tmp_path: Path) -> None:
    history = read_history(tmp_path)
    assert breaks(history) == ()
    assert unsteady(history) == ()
    assert cell_history(history, "x") == ()
    assert trend(history).empty
