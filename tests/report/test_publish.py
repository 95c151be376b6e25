"""A matrix to publish, and the answers from it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from record_builders import cell, plan, record, rejected

from harness.answers.query import Query
from harness.answers.question import parse
from harness.answers.store import Store, read_known, read_packed, vocabulary_of
from harness.cases.discovery import find_cases
from harness.errors import NothingToRun
from harness.model import Cell
from harness.published import ENVIRONMENT, is_published, read_manifest
from harness.records import Record, RecordError, RecordWriter
from harness.records.parquet import read_parquet
from harness.report.publish import KEY, Published, publish

CASES = Path(__file__).parents[2] / "cases"
CELLS = Path(__file__).parents[1] / "answers" / "cells.parquet"


def written(path: Path, cells: Sequence[Cell], records: Sequence[Record], run: str = "run-1") -> Path:
    with RecordWriter(path, plan(*cells, run=run)) as writer:
        for item in records:
            writer.append(item)
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    of = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90")]
    gone = cell("wmma/no-longer-there")
    return written(tmp_path / "r.jsonl", [*of, gone], [record(of[0], rejected()), record(of[1]), record(gone)])


@pytest.fixture
def matrix(results: Path, tmp_path: Path) -> Published:
    return publish([results], tmp_path / "matrix", CASES)


def test_what_is_published_has_proof_and_no_case_that_is_gone(matrix: Published) -> None:
    assert (matrix.cells, matrix.answered, matrix.stale) == (2, 2, {"wmma/no-longer-there": 1})
    records, plans = read_parquet(matrix.out / "results.parquet")
    assert [item["target"] for item in records] == ["sm_75", "sm_80"]
    assert {item["environment"] for item in (*records, *plans)} == {ENVIRONMENT}
    assert not any(item["log"] for item in records)
    # Hashes are the incompressible part: the wheel contains this file.
    assert {len(item["fingerprint"]) for item in records} == {KEY}
    assert records[1]["artifact"] == record(cell())["artifact"]
    assert pq.read_table(matrix.out / "results.parquet")["artifact_sha256"].null_count == 2
    assert records[0]["diagnostics"] and records[0]["command"] == record(cell(target="sm_75"), rejected())["command"]
    # Cells that never arrived have no answer.
    assert [len(item["cells"]) for item in plans] == [2]
    manifest = read_manifest(matrix.out)
    assert list(manifest.cases) == ["wmma/fragments"]
    assert (manifest.cells, manifest.answered) == (2, 2)
    text = (matrix.out / "README.md").read_text()
    assert "1 built, 1 rejected" in text and "The compilers took 0.0 hours" in text
    assert is_published(matrix.out)


def test_folders_of_the_machine_stay_there(tmp_path: Path) -> None:
    of = cell()
    message = "no numpy.linalg in /home/me/.local/share/cumatrix/environments/x/numpy: see /usr/include/math.h"
    item = record(of, rejected())
    item = {**item, "diagnostics": [{**item["diagnostics"][0], "message": message}]}
    published = publish([written(tmp_path / "r.jsonl", [of], [item])], tmp_path / "matrix", CASES)
    (found,), _ = read_parquet(published.out / "results.parquet")
    assert found["diagnostics"][0]["message"] == "no numpy.linalg in $CUMATRIX_HOME/environments/x/numpy: see /usr/include/math.h"  # fmt: skip


def test_the_same_gives_the_same_and_a_matrix_can_be_extended(matrix: Published, tmp_path: Path) -> None:
    again = publish([matrix.out], tmp_path / "again", CASES)
    for name in ("answers.json.gz", "manifest.json"):
        assert (again.out / name).read_bytes() == (matrix.out / name).read_bytes()
    more = written(
        tmp_path / "more.jsonl", [cell(target="sm_90")], [record(cell(target="sm_90"), run="later")], run="later"
    )
    extended = publish([matrix.out, more], matrix.out, CASES)
    assert (extended.cells, extended.stale) == (3, {})
    assert len(read_manifest(matrix.out).value["runs"]) == 2


def test_cells_of_a_case_that_changed_since_their_commit_are_left_out(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    cases = repository / "cases"
    for name in ("fragments", "accumulator-16x16x8"):
        shutil.copytree(CASES / "wmma" / name, cases / "wmma" / name)

    def git(*words: str) -> str:
        settings = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        return subprocess.run(["git", *settings, *words], cwd=repository, check=True, capture_output=True, text=True).stdout.strip()  # fmt: skip

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "cases")
    of = [cell(), cell("wmma/accumulator-16x16x8")]
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, {**plan(*of), "commit": git("rev-parse", "HEAD")}) as writer:
        for item in of:
            writer.append(record(item))
    kernel = cases / "wmma" / "fragments" / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// changed\n")
    done = publish([path], tmp_path / "matrix", cases)
    assert (done.cells, done.stale, done.notes) == (1, {"wmma/fragments": 1}, ())
    # The published matrix is compared with the cases of its own date.
    kernel = cases / "wmma" / "accumulator-16x16x8" / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// changed\n")
    with pytest.raises(NothingToRun, match="no cell of the cases"):
        publish([done.out], tmp_path / "matrix", cases)


def test_another_projects_case_of_the_same_name_is_left_out(tmp_path: Path) -> None:
    ours = cell()
    theirs = replace(ours, case=replace(ours.case, project="theirs"))
    found = publish(
        [written(tmp_path / "r.jsonl", [ours, theirs], [record(ours), record(theirs, rejected())])],
        tmp_path / "m",
        CASES,
    )
    assert (found.cells, found.answered) == (1, 1)
    assert any("1 cells of other projects" in note for note in found.notes)
    assert [item["status"] for item in read_parquet(found.out / "results.parquet")[0]] == ["built"]


def test_packed_answers_are_those_of_the_records(tmp_path: Path) -> None:
    done = publish([CELLS], tmp_path / "matrix", CASES)
    packed = read_packed(done.out / "answers.json.gz")
    whole = Store.of(read_known([done.out / "results.parquet"]))
    assert packed.answered == whole.answered == done.answered > 1000
    assert set(packed.rows_of(packed.features)) == set(whole.rows_of(whole.features))
    # Untried cases are listed, which lets `ask` answer a question about them.
    named = {case: replace(packed.features[case], names=()) for case in whole.features}
    assert named == dict(whole.features)
    # Records have no programs: names in them come from the cases.
    assert "wgmma" in packed.features["instructions/wgmma"].names
    assert len(packed.features) == len(find_cases(CASES)) > len(whole.features)
    assert set(vocabulary_of(whole).words) < set(vocabulary_of(packed).words)
    vocabulary = vocabulary_of(packed)
    for question in (
        "bf16 wmma sm_75",
        "grid sync numba 0.59",
        "wmma",
        "cutlass 3.5.1 sm_90",
        "does wgmma work on sm_120",
    ):
        asked = Query(chips=tuple(parse(question, vocabulary)))
        assert packed.answer(asked, vocabulary).findings == whole.answer(asked, vocabulary).findings


def test_damage_is_told_with_the_file(matrix: Published) -> None:
    for name, data in (("answers.json.gz", b"no gzip"), ("manifest.json", b"{"), ("manifest.json", b'{"schema": 99}')):
        (matrix.out / name).write_bytes(data)
        with pytest.raises(RecordError, match=name):
            read_packed(matrix.out / name) if name.endswith(".gz") else read_manifest(matrix.out)
