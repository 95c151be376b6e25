"""State from which an interrupted bisect continues, in addition to the cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import record_builders as make
from bisection_builders import YES
from cells import make_case

from harness.bisection.trials import Journal, journal_for
from harness.engine.cache import ResultCache
from harness.engine.context import RunContext
from harness.engine.environment import Environment
from harness.model import Outcome, Stage, Status
from harness.protocol.messages import Limits
from harness.toolkits import ToolkitStore

DIED = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11, reason="it died")


def test_what_the_cache_does_not_keep_answers(tmp_path: Path) -> None:
    path, cell = tmp_path / "kept.jsonl", make.cell()
    Journal(path).append(make.changed(make.record(cell, DIED), fingerprint=""))
    found = Journal(path).answer(cell)
    assert found is not None and found["signal"] == 11
    assert Journal(path).answer(make.cell(target="sm_90")) is None
    assert (
        Journal(path).answer(
            replace(cell, toolchain=replace(cell.toolchain, packages={"cupy": "13.6.0", "numpy": "2.0"}))
        )
        is None
    )


def test_what_the_cache_keeps_is_for_the_cache_to_answer(tmp_path: Path) -> None:
    Journal(tmp_path / "kept.jsonl").append(make.record(outcome=YES))
    assert len(Journal(tmp_path / "kept.jsonl")) == 1
    assert Journal(tmp_path / "kept.jsonl").answer(make.cell()) is None


def test_half_a_line_and_a_damaged_file_are_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    Journal(path).append(make.changed(make.record(outcome=DIED), fingerprint=""))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    assert len(Journal(path)) == 1
    assert path.read_bytes() == whole
    path.write_text("what is this\n")
    assert len(Journal(path)) == 0
    assert not path.exists()


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    environment = Environment(name="local", python="/usr/bin/python3", version="3.11.9", distributions={})
    return RunContext(environment, ToolkitStore(tmp_path / "toolkits"), ResultCache(tmp_path / "cache" / "results"))


def test_each_question_has_a_file_of_its_own(tmp_path: Path, context: RunContext) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    source = folder / "kernel.cu"
    source.write_text("__global__ void k() {}\n")
    case = make_case(source)
    first = journal_for(case, context, ["cuda"]).path
    assert first is not None and first.parent == tmp_path / "cache" / "bisect"
    assert journal_for(case, context, ["cuda"]).path == first
    others = {
        journal_for(case, context, ["headers"]).path,
        journal_for(case, context.asking(limits=Limits(seconds=5)), ["cuda"]).path,
    }
    (folder / "found.jsonl").write_text("{}\n")
    assert journal_for(case, context, ["cuda"]).path == first
    (folder / "header.h").write_text("#define N 1\n")
    others.add(journal_for(case, context, ["cuda"]).path)
    assert len(others | {first}) == 4
    assert journal_for(case, replace(context, cache=None), ["cuda"]).path is None
