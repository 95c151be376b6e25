"""Traces of a run."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from harness.engine.context import Trace
from harness.errors import UsageError


def test_spans_of_every_thread(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "deep" / "t.json")

    def work() -> None:
        with trace.span("outer", cell="a"), trace.span("inner"):
            pass

    thread = threading.Thread(target=work, name="runner 1")
    thread.start()
    thread.join()
    with trace.span("plan"):
        pass
    trace.write()
    events = json.loads((tmp_path / "deep" / "t.json").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    spans = {event["name"]: event for event in events if event["ph"] == "X"}
    assert {names[span["tid"]] for span in spans.values()} == {"runner 1", "scheduler"}
    assert spans["outer"]["args"] == {"cell": "a"}
    inner, outer = spans["inner"], spans["outer"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert all(span["ts"] >= 0 and span["dur"] >= 0 and span["pid"] for span in spans.values())


def test_a_span_is_noted_when_its_body_fails(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "t.json")
    with pytest.raises(ZeroDivisionError), trace.span("fails"):
        raise ZeroDivisionError
    trace.write()
    assert "fails" in (tmp_path / "t.json").read_text()


def test_without_a_file_nothing_is_kept() -> None:
    trace = Trace()
    with trace.span("anything"):
        pass
    trace.write()
    assert not trace._events


def test_a_file_that_cannot_be_written_is_known_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--trace: cannot write"):
        Trace(tmp_path)
