"""The engine of a machine without the client's files: programs are sent, and keys stay the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.cluster.source_transfer import Sent, collect, digests, has
from harness.cluster.worker import Engine, WorkerRequest
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import look
from harness.engine.executor import Run
from harness.engine.fingerprints import engine_digest
from harness.errors import UsageError
from harness.model import Cell, Status
from harness.toolkits import Installed, ToolkitStore


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cell:
    """Write a program with a header next to it and one in another folder, named relative to the current folder."""
    here = tmp_path / "mine"
    for path, text in {
        "mine/case/kernel.cu": '#include "own.h"\n#include <far.h>\n__global__ void k(int *a) { *a = OWN + FAR; }\n#error\n',
        "mine/case/own.h": "#define OWN 1\n",
        "mine/case/.hidden": "secret",
        "far/far.h": "#define FAR 2\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(here)
    return make_cell(make_case(Path("case/kernel.cu"), "made/case"))


def test_what_programs_may_read_is_sent_and_laid_out_under_the_same_names(cell: Cell, tmp_path: Path) -> None:
    sent = collect([cell], [tmp_path / "far"], Path.cwd())
    names = [os.path.relpath(path, tmp_path) for path in sorted(sent.files)]
    assert names == ["far/far.h", "mine/case/kernel.cu", "mine/case/own.h"]
    places = sent.lay_out(tmp_path / "theirs")
    moved = places.case(cell.case)
    source = moved.sources["cuda"]
    assert source.read_text() == Path("case/kernel.cu").read_text()
    assert (places.of(tmp_path / "far") / "far.h").read_text() == "#define FAR 2\n"
    roots = places.roots(sys.executable)
    assert roots.name(str(source)) == "$HERE/case/kernel.cu"
    assert roots.name(str(places.of(tmp_path / "far" / "far.h"))) == str(tmp_path / "far" / "far.h")


def test_nothing_is_sent_to_who_has_it(cell: Cell) -> None:
    programs = digests([cell], Path.cwd())
    assert has(programs)
    Path("case/kernel.cu").write_text("another")
    assert not has(programs)
    assert not has({"/nowhere/kernel.cu": ""})


def test_a_folder_that_is_too_large_is_not_sent(cell: Cell) -> None:
    with open("case/data.bin", "wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(UsageError, match="too much to send"):
        collect([cell], [], Path.cwd())


def asked(context: RunContext, sent: Sent, **fields: object) -> WorkerRequest:
    plain = WorkerRequest(
        engine=engine_digest(), request=replace(context.request, device="none", no_cache=True, offline=True),
        environment=context.environment, others=(), sanitizer="", own_python=True, same_machine=False, sent=sent,
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


@pytest.mark.compilers
def test_a_machine_of_other_folders_tells_the_same_under_the_same_key(
    cell: Cell, store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    context = RunContext(look(), store, None, RunRequest(include=(tmp_path / "far",)))
    with Run(context) as run:
        here = run.result(cell)
    engine = Engine(asked(context, collect([cell], context.request.include, Path.cwd())), 1)
    try:
        (outcome, cached, key), *_ = (answer := engine.run([cell])).results
    finally:
        engine.close()
    assert here.outcome.status is outcome.status is Status.REJECTED
    assert (outcome.log, outcome.diagnostics) == (here.outcome.log, here.outcome.diagnostics)
    assert "theirs" not in outcome.log and "cumatrix-run" not in outcome.log
    assert not cached and key == here.key != ""
    assert answer.inputs.answers.keys() == {key}


def test_another_cumatrix_answers_nothing(cell: Cell, store: ToolkitStore) -> None:
    context = RunContext(look(), store, None)
    engine = Engine(asked(context, Sent(str(Path.cwd())), engine="another"), 1)
    try:
        ((outcome, _, _),) = engine.run([cell]).results
    finally:
        engine.close()
    assert outcome.status is Status.UNAVAILABLE
    assert "another version of cumatrix" in outcome.reason
