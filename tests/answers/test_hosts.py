"""Host compilers in questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from record_builders import built, cell, plan, record, rejected

from harness.answers.answer import answer, command_for
from harness.answers.cells import COLUMNS, Known, split_host
from harness.answers.query import Query
from harness.answers.question import parse
from harness.answers.store import Store, known_of, packed_answers, read_known, read_packed, vocabulary_of
from harness.matrix.marks import kind_of
from harness.model import HostCompiler, Outcome
from harness.model.cell import host_named
from harness.records import Record
from harness.records.parquet import results_parquet


def made(host: HostCompiler, outcome: Outcome | None = None, case: str = "host/intrinsics", **of: Any) -> Record:
    """Return a record of nvcc with a host compiler."""
    one = cell(case, **{"backend": "nvcc", "library": "", "toolkit": "13.0", "title": case.partition("/")[2], **of})
    return record(replace(one, toolchain=replace(one.toolchain, host=host)), outcome or built())


OWN = HostCompiler(version="gcc 12.2.0, glibc 2.36")
RECORDS = (
    made(host_named("gcc-11"), rejected("no such header")),
    made(host_named("gcc-12")),
    made(host_named("clang-19")),
    made(host_named("glibc-2.42"), rejected("already declared")),
    made(OWN, case="wmma/fragments"),
)


@pytest.fixture
def known() -> Known:
    return known_of(RECORDS)


def told(question: str, known: Known) -> list[str]:
    vocabulary = vocabulary_of(Store.of(known))
    asked = Query(chips=tuple(parse(question, vocabulary)))
    found = answer(asked, known, vocabulary)
    assert found == Store.of(known).answer(asked, vocabulary)
    return [
        f"{said.tool}: {said.verdict.text}" + (f" ({said.overall})" if said.overall else "")
        for finding in found.findings
        for said in finding.tools
    ]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("gcc-12 intrinsics", ["nvcc with gcc: builds (with other versions: builds since 12 (CUDA 13.0))"]),
        (
            "g++ 11 nvcc 13.0",
            ["nvcc with gcc: does not build, 0 of 1 (with other versions: builds since 12 (CUDA 13.0))"],
        ),
        ("clang19 nvcc", ["nvcc with clang: builds"]),
        ("intrinsics glibc 2.42", ["nvcc with glibc: does not build, 0 of 1"]),
        ("intrinsics gcc-14", ["nvcc with gcc: not tried (with other versions: builds since 12 (CUDA 13.0))"]),
        # The machine's own host compiler is known, and so is the host compiler of other programs.
        ("fragments gcc 12.2", ["nvcc: builds (with the machine's own host compiler (gcc 12.2.0, glibc 2.36))"]),
        ("fragments glibc-2.36", ["nvcc: builds (with the machine's own host compiler (gcc 12.2.0, glibc 2.36))"]),
        (
            "fragments gcc 13",
            ["nvcc: not tried (with the machine's own host compiler (gcc 12.2.0, glibc 2.36): builds)"],
        ),
        (
            "fragments nvcc clang",
            ["nvcc: not tried (with the machine's own host compiler (gcc 12.2.0, glibc 2.36): builds)"],
        ),
        ("fragments", ["nvcc: builds"]),
    ],
)
def test_answers_are_of_the_host_compiler_that_is_named(question: str, wanted: list[str], known: Known) -> None:
    assert told(question, known) == wanted


def test_other_tools_have_no_host_compiler() -> None:
    of = cell("wmma/fragments", backend="nvrtc", library="")
    assert told("fragments gcc-12 nvrtc", known_of([*RECORDS, record(of, built())])) == ["NVRTC: builds"]
    assert told("fragments gcc-12", known_of([record(of, built())])) == []


def test_what_nobody_tried_has_a_command(known: Known) -> None:
    vocabulary = vocabulary_of(Store.of(known))

    def command(text: str) -> str:
        return command_for(Query(chips=tuple(parse(text, vocabulary))), vocabulary)

    assert command("gcc-14 cuda 13.0") == "cumatrix try kernel.cu -b nvcc --host-compiler gcc-14 -t 13.0"
    assert command("pytorch glibc 2.43") == "cumatrix try kernel.cu --with torch=all --host-compiler glibc-2.43=/path/to/g++"  # fmt: skip


def test_names_tell_a_version_or_none() -> None:
    assert split_host("gcc-13") == ("gcc", "13")
    assert split_host("glibc-2.43") == ("glibc", "2.43")
    assert split_host("our-gcc") == ("host compiler", "our-gcc")
    assert split_host("") == ("", "")


def test_files_tell_the_same(known: Known, tmp_path: Path) -> None:
    plans = [plan(*[])]
    (tmp_path / "results.parquet").write_bytes(results_parquet(RECORDS, plans))
    assert "host_compiler" not in pq.read_schema(tmp_path / "results.parquet").names
    read = read_known([tmp_path / "results.parquet"])
    assert (sorted(read.rows), read.hosts) == (sorted(known.rows), known.hosts)
    rows = []
    for one in RECORDS:
        of: Mapping[str, Any] = one
        message = one["diagnostics"][0]["message"] if one["diagnostics"] else ""
        rows.append((*(of.get(name, "") for name in COLUMNS[:-3]), kind_of(one).key, one["status"], message))
    (tmp_path / "answers.json.gz").write_bytes(packed_answers(rows, known.features, {}, known.hosts))
    packed = read_packed(tmp_path / "answers.json.gz")
    assert sorted(packed.rows_of(packed.features)) == sorted(known.rows)
    assert (packed.uses, packed.hosts) == (Store.of(known).uses, known.hosts)
