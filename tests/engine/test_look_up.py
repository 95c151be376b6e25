"""Answers of earlier runs: cells that reuse an answer, and cells that do not."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.engine.cache import ResultCache
from harness.engine.file_states import Files
from harness.engine.fingerprints import Answers
from harness.engine.prepared import Result
from harness.engine.reads import Reads
from harness.engine.resolve import Firsts, LookUp
from harness.model import Artifact, Cell, Outcome, Stage, Status
from harness.records.files import ArtifactFolder

TARGETS = ("sm_75", "sm_80", "sm_90")
Ask = Callable[[LookUp, Sequence[tuple[Cell, Firsts]]], list[Result | None]]


def at_once(look_up: LookUp, asked: Sequence[tuple[Cell, Firsts]]) -> list[Result | None]:
    return look_up.all(asked)


def one_by_one(look_up: LookUp, asked: Sequence[tuple[Cell, Firsts]]) -> list[Result | None]:
    return [look_up.one(cell, firsts) for cell, firsts in asked]


@pytest.fixture
def cells(tmp_path: Path) -> list[Cell]:
    source = tmp_path / "kernel.cu"
    source.write_text("text")
    return [make_cell(make_case(source), target=target) for target in TARGETS]


@pytest.fixture
def cache(tmp_path: Path) -> ResultCache:
    return ResultCache(tmp_path / "cache")


def keep(cache: ResultCache, cell: Cell, outcome: Outcome) -> str:
    """Store an outcome as a run does, under the files that it has read; return its key."""
    path = str(cell.case.path)
    key = Answers(cache).key_of(first(cell), Reads({path: Files().current_state(path, False)[1]}, frozenset())).key
    cache.keep_outcome(key, outcome)
    return key


def first(cell: Cell) -> str:
    return f"first {cell.target}"


def asked_for(cells: Sequence[Cell]) -> list[tuple[Cell, Firsts]]:
    return [(cell, {f"never {cell.target}": "other", first(cell): f"worker {cell.target}"}) for cell in cells]


def refused(cell: Cell) -> Outcome:
    return Outcome(status=Status.UNSUPPORTED, stage=Stage.COMPILE, reason=f"no {cell.target}")


@pytest.mark.parametrize("ask", [at_once, one_by_one])
@pytest.mark.parametrize("lacking", [0, 1, 2])
def test_each_cell_has_its_own_answer(cache: ResultCache, cells: list[Cell], ask: Ask, lacking: int) -> None:
    keys = {each.id: keep(cache, each, refused(each)) for place, each in enumerate(cells) if place != lacking}
    answers = Answers(cache)
    found = ask(LookUp(cache, answers), asked_for(cells))
    for place, (cell, result) in enumerate(zip(cells, found, strict=True)):
        if place == lacking:
            assert result is None
        else:
            assert result == Result(cell, refused(cell), cached=True, key=keys[cell.id])
            assert answers.workers[first(cell)] == f"worker {cell.target}"
    cells[0].case.path.write_text("other text")
    assert ask(LookUp(cache, Answers(cache)), asked_for(cells)) == [None] * 3


@pytest.mark.parametrize("ask", [at_once, one_by_one])
def test_without_a_cache_nothing_is_found(cells: list[Cell], ask: Ask) -> None:
    look_up = LookUp(None, Answers(None))
    assert ask(look_up, asked_for(cells)) == [None] * 3
    look_up.close()


@pytest.mark.parametrize("ask", [at_once, one_by_one])
def test_what_was_built_is_taken_only_where_the_artifact_is(
    cache: ResultCache, cells: list[Cell], ask: Ask, tmp_path: Path
) -> None:
    folder = ArtifactFolder(tmp_path / "artifacts")
    folder.open()
    for cell in cells:
        data = str(cell.target).encode()
        artifact = Artifact(
            format="cubin",
            target=str(cell.target),
            bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            kernels=(),
        )
        keep(cache, cell, Outcome(status=Status.BUILT, stage=Stage.ASSEMBLE, artifact=artifact))
        if cell is cells[1]:
            folder.keep("cubin", artifact.sha256, data)
    found = ask(LookUp(cache, Answers(cache), folder), asked_for(cells))
    assert [each is not None for each in found] == [False, True, False]
    assert all(ask(LookUp(cache, Answers(cache)), asked_for(cells))), "nobody asked for artifacts"
    keep(cache, cells[0], refused(cells[0]))
    assert ask(LookUp(cache, Answers(cache), folder), asked_for(cells[:1]))[0], "there is none to be kept"


def test_what_was_asked_for_is_forgotten_last(cache: ResultCache, cells: list[Cell]) -> None:
    keys = [keep(cache, each, refused(each)) for each in cells]
    with closing(sqlite3.connect(cache.folder / "results.db")) as connection:
        connection.execute("UPDATE entries SET used = 0.0")
        connection.commit()
        look_up = LookUp(cache, Answers(cache))
        assert all(look_up.all(asked_for(cells[:2])))
        look_up.close()
        used = dict(connection.execute("SELECT key, used > 0 FROM entries").fetchall())
    assert [bool(used[key]) for key in keys] == [True, True, False]
