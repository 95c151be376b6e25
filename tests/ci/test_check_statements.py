"""``.ci/check_statements.py``: each rule, with true and false statements about a few cells."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import check_statements
import pandas as pd
import pytest
from check_statements import Statement, claims_of, judge, ranges_of, variants_of
from statement_rules import Cells, Claim, Subject, inside, order

from harness.report.page_data import script

from .steps import ROOT

Row = dict[str, Any]


def row(
    outcome: str = "built", *, cuda: str = "12.4", target: str = "sm_80", backend: str = "nvrtc", library: str = "", case: str = "topic/one", variant: str = "",
    host: str = "", launched: bool = False, parts: dict[str, str] | None = None, message: str = "",
) -> Row:  # fmt: skip
    """Return a record in Parquet's form."""
    toolchain = {"requested": {"packages": {"python": "3.11.7"}, "toolkit": cuda}, "observed": parts or {}}
    tool = f"{backend}@{library}" if library else backend
    return {
        "cell": f"{case}{f'[{variant}]' * bool(variant)} {tool} cuda{cuda} {host}{target}", "case": case, "variant": variant, "backend": backend,
        "library": library, "target": target, "toolkit": cuda, "status": outcome, "message": message, "reason": "",
        "stages_json": json.dumps(["compile", "assemble", *(["launch"] if launched else [])]),
        "toolchain_json": json.dumps(toolchain), "more_json": json.dumps({"host_compiler": host}),
    }  # fmt: skip


def rows(outcomes: str, releases: Sequence[str], *, axis: str = "cuda", **kwargs: Any) -> list[Row]:
    """Return a cell for each release: ``w`` built and launched, ``x`` rejected, ``n`` not applicable, a space for none."""
    names = {"w": "built", "x": "rejected", "n": "unsupported"}
    return [row(names[letter], launched=letter == "w", **{axis: release, **kwargs}) for letter, release in zip(outcomes, releases, strict=True) if letter != " "]  # fmt: skip


def cells_of(found: Iterable[Row]) -> Cells:
    return Cells(pd.DataFrame(list(found)).astype(object))


def kinds(
    cells: Cells, text: str, note: str = "", *, changes: tuple[tuple[str, ...], ...] = (), **kwargs: Any
) -> list[str]:
    """Return the kinds of errors in a statement about topic/one."""
    subject = Subject(**{"case": "topic/one", "variants": ("",), "tool": "nvrtc", "of": "", "targets": ("sm_80",), **kwargs})  # fmt: skip
    return [found.kind for found in judge(Statement("test", subject, "", text, note, changes=changes), cells, 3)]


CUDA = ("12.0", "12.4", "12.8", "13.0")


class TestChanges:
    """Rule 1."""

    def test_two_cells_that_differ_in_the_release_alone_show_a_change(self) -> None:
        assert kinds(cells_of(rows("xxww", CUDA)), "builds since CUDA 12.8") == []

    def test_another_release_is_contradicted(self) -> None:
        assert kinds(cells_of(rows("xxww", CUDA)), "builds since CUDA 12.4") == ["3 range with another outcome"]  # fmt: skip

    def test_a_release_below_that_works_contradicts(self) -> None:
        assert "3 only, but also elsewhere" in kinds(cells_of(rows("wxww", CUDA)), "builds since CUDA 12.8")

    def test_releases_that_were_tried_with_different_cuda_show_none(self) -> None:
        found = [row("rejected", backend="cupy-nvrtc", library="13.0.0", cuda="12.4"), row(launched=True, backend="cupy-nvrtc", library="14.0.0", cuda="12.8")]  # fmt: skip
        assert kinds(cells_of(found), "builds since 14.0.0", tool="cupy-nvrtc") == ["1 change without a pair"]

    def test_a_pair_with_each_cuda_is_enough(self) -> None:
        found = rows("xw", ("13.0.0", "14.0.0"), axis="library", backend="cupy-nvrtc", cuda="12.4")
        found += rows("xw", ("13.0.0", "14.0.0"), axis="library", backend="cupy-nvrtc", cuda="12.8")
        assert kinds(cells_of(found), "builds since 14.0.0", tool="cupy-nvrtc") == []

    def test_two_outcomes_of_versions_that_were_not_compared_show_none(self) -> None:
        found = [row(outcome, launched=True, backend="cupy-nvrtc", library=library, cuda=cuda) for outcome, library, cuda in (("rejected", "13.0.0", "12.4"), ("built", "14.0.0", "12.8"))]  # fmt: skip
        cells = cells_of(found)
        assert kinds(cells, "builds with 14.0.0; not with 13.0.0", tool="cupy-nvrtc") == ["1 change without a pair"]

    def test_evidence_differs_in_no_other_axis(self) -> None:
        cells = cells_of([*rows("xw", CUDA[:2]), *rows("xw", CUDA[:2], target="sm_90")])
        change = ("cuda", "topic/one nvrtc cuda12.0 sm_90", "topic/one nvrtc cuda12.4 sm_80")
        assert kinds(cells, "builds since CUDA 12.4", changes=(change,)) == ["1 evidence that shows no change"]

    def test_a_pair_without_a_change_is_none(self) -> None:
        found = rows("xw", ("12.4", "12.8"), backend="cupy-nvrtc", library="13.0.0")
        found += rows("w", ("12.8",), backend="cupy-nvrtc", library="14.0.0")
        note = "13.0.0: builds since CUDA 12.8"
        assert kinds(cells_of(found), "builds since 14.0.0", note, tool="cupy-nvrtc") == ["1 change without a pair"]
        found += rows("w", ("12.4",), backend="cupy-nvrtc", library="14.0.0")
        assert kinds(cells_of(found), "builds since 14.0.0", note, tool="cupy-nvrtc") == []

    def test_a_change_with_one_cuda_release_has_to_name_it(self) -> None:
        cells = cells_of(rows("xw", ("0.63.0", "0.63.1"), axis="library", backend="numba"))
        assert kinds(cells, "builds since 0.63.1", tool="numba") == ["1 change of a library with one CUDA release, unnamed"]  # fmt: skip
        change = ("numba", "topic/one numba@0.63.0 cuda12.4 sm_80", "topic/one numba@0.63.1 cuda12.4 sm_80")
        assert kinds(cells, "builds since 0.63.1 (CUDA 12.4)", tool="numba", changes=(change,)) == []

    def test_a_change_of_cuda_with_one_library_release_has_to_name_it(self) -> None:
        cells = cells_of(rows("xxww", CUDA, library="14.0.0", backend="cupy-nvrtc"))
        assert kinds(cells, "builds since CUDA 12.8", tool="cupy-nvrtc") == ["1 change of CUDA with one release of the library, unnamed"]  # fmt: skip
        assert kinds(cells, "14.0.0: builds since CUDA 12.8", tool="cupy-nvrtc") == []

    @pytest.mark.parametrize(("companion", "false"), [("0.61.2", False), ("0.63.1", True)])
    def test_a_companion_that_changes_as_well_hides_the_cause(self, companion: str, false: bool) -> None:
        found = [
            row(outcome, launched=True, backend="numba-cuda", library=library, cuda=cuda, parts={"numba": numba})
            for cuda in ("12.4", "12.8")
            for outcome, library, numba in (("built", "0.19.0", "0.61.2"), ("rejected", "0.19.2", companion))
        ]
        assert kinds(cells_of(found), "builds up to 0.19.0", tool="numba-cuda") == ["1 change without a pair, other parts differ"] * false  # fmt: skip

    def test_parts_that_the_axis_moves_are_no_companions(self) -> None:
        found = rows("x", ("12.4",), parts={"nvrtc": "12.4", "ptxas": "12.4.131"})
        found += rows("w", ("12.8",), parts={"nvrtc": "12.8", "ptxas": "12.8.93"})
        assert kinds(cells_of(found), "builds since CUDA 12.8") == []

    def test_evidence_has_to_show_the_change(self) -> None:
        cells = cells_of(rows("xxww", CUDA))
        names = [f"topic/one nvrtc cuda{release} sm_80" for release in CUDA]
        assert kinds(cells, "builds since CUDA 12.8", changes=(("cuda", *names[1:3]),)) == []
        for pair in (names[:2], [names[1], "no cell"]):
            assert kinds(cells, "builds since CUDA 12.8", changes=(("cuda", *pair),)) == ["1 evidence that shows no change"]  # fmt: skip

    @pytest.mark.parametrize(
        ("outcomes", "text", "note"),
        [
            ("wwxx", "builds up to CUDA 12.4", ""),
            ("wxww", "builds except CUDA 12.4", ""),
            ("xwwx", "builds only with CUDA 12.4 to 12.8", ""),
            ("wxwx", "builds only with CUDA 12.0, 12.8", ""),
            ("xwxw", "builds since CUDA 13.0", "and with CUDA 12.4"),
            ("xwxw", "builds since CUDA 12.4 except 12.8", ""),
            ("wwxx", "builds with CUDA 12.0, 12.4; not with CUDA 12.8, 13.0", ""),
            ("wwxx", "builds in 2 of 4 combinations", ""),
        ],
    )
    def test_true_statements(self, outcomes: str, text: str, note: str) -> None:
        assert kinds(cells_of(rows(outcomes, CUDA)), text, note) == []
        swapped = outcomes.translate(str.maketrans("wx", "xw")) if "combinations" not in text else "wxxx"
        assert kinds(cells_of(rows(swapped, CUDA)), text, note) != []

    def test_the_axes_of_libraries_and_host_compilers(self) -> None:
        found = [row(outcome, launched=True, backend="nvcc", host=f"gcc-{release}", cuda=cuda) for cuda in CUDA[:2] for outcome, release in (("rejected", "12"), ("built", "13"))]  # fmt: skip
        assert kinds(cells_of(found), "builds since 13", tool="nvcc", of="gcc") == []
        found = rows("xw", ("cccl=2.8.2", "cccl=3.0.1"), axis="variant")
        assert kinds(cells_of(found), "builds since 3.0.1", of="cccl") == []
        assert kinds(cells_of(found), "builds since 2.8.2", of="cccl") != []


class TestNever:
    """Rule 2."""

    @pytest.mark.parametrize(
        ("outcomes", "kind"),
        [
            ("x   ", "one cell"),
            ("xx  ", "fewer CUDA releases than could be tried"),
            ("xxx ", "fewer CUDA releases than could be tried"),
            ("xxxx", ""),
            ("nxxx", ""),
        ],
    )
    def test_a_bare_never_covers_all_releases_that_know_the_target(self, outcomes: str, kind: str) -> None:
        cells = cells_of([*rows(outcomes, CUDA), *rows("wwww", CUDA, case="topic/other")])
        assert kinds(cells, "never") == ([f"2 never without a count, from {kind}"] if kind else [])

    def test_releases_that_do_not_know_the_target_do_not_count(self) -> None:
        cells = cells_of([*rows("nxxx", CUDA), *rows("nwww", CUDA, case="topic/other")])
        assert kinds(cells, "never") == []

    def test_one_cuda_release_with_many_of_the_library_is_one(self) -> None:
        cells = cells_of(rows("xx", ("0.63.0", "0.63.1"), axis="library", backend="numba"))
        assert kinds(cells, "never", tool="numba") == ["2 never without a count, from one CUDA release"]

    def test_a_count_is_that_of_the_cells(self) -> None:
        cells = cells_of(rows("xx", CUDA[:2]))
        assert kinds(cells, "0 of 2") == []
        assert kinds(cells, "0 of 3") == ["2 another count"]
        assert kinds(cells, "0 of 3") == ["2 another count"]
        assert kinds(cells, "never (0 of 2)") == ["2 never, from too few releases"]
        assert kinds(cells_of(rows("xxxx", CUDA)), "never (0 of 4)") == []

    @pytest.mark.parametrize(
        ("tried", "kind"),
        [
            ("CUDA 12.0, 12.4", []),
            ("CUDA 2 of 12.0 to 12.4", []),
            ("CUDA 12.0", ["3 tried, but not these"]),
            ("CUDA 12.0 to 13.0", ["3 tried, but not these"]),
            ("CUDA 3 of 12.0 to 12.4", ["3 tried, but not these"]),
        ],
    )
    def test_the_releases_tried_are_these_and_no_others(self, tried: str, kind: list[str]) -> None:
        cells = cells_of([*rows("xx", CUDA[:2]), *rows("wwww", CUDA, case="topic/other")])
        assert kinds(cells, "0 of 2", f"tried: {tried}") == kind

    def test_versions_that_changed_together_are_named_together(self) -> None:
        found = [row("rejected", backend="torch-nvcc", library="2.6.0", cuda="12.4"), row(backend="torch-nvcc", library="2.11.0", cuda="13.0")]  # fmt: skip
        assert kinds(cells_of(found), "builds with 2.11.0 and CUDA 13.0; not with 2.6.0 and CUDA 12.4", tool="torch-nvcc") == []  # fmt: skip
        assert kinds(cells_of(found), "builds with 2.11.0 and CUDA 12.4; not with 2.6.0 and CUDA 12.4", tool="torch-nvcc") != []  # fmt: skip

    def test_a_cell_that_builds_contradicts(self) -> None:
        assert kinds(cells_of(rows("xxwx", CUDA)), "never") == ["3 never, but builds"]
        assert kinds(cells_of(rows("wwxw", CUDA)), "builds") == ["3 works, but refused"]

    def test_each_variant_and_each_target_counts(self) -> None:
        found = [*rows("xxxx", CUDA, variant="a=1"), *rows("xxwx", CUDA, variant="a=2")]
        assert kinds(cells_of(found), "never", variants=("a=1",)) == []
        assert kinds(cells_of(found), "never", variants=("a=1", "a=2")) == ["3 never, but builds"]
        found = [*rows("xxxx", CUDA), *rows("xxwx", CUDA, target="sm_90")]
        assert kinds(cells_of(found), "never", targets=("sm_80", "sm_90")) == ["3 never, but builds"]


TARGETS = ("sm_70", "sm_75", "sm_80", "sm_90")


class TestRanges:
    """Rule 3."""

    def test_architectures_from_one_on(self) -> None:
        found = rows("xxww", TARGETS, axis="target")
        assert kinds(cells_of(found), "builds", "from sm_80", targets=("sm_80",)) == []
        assert "3 only, but also elsewhere" in kinds(cells_of(found), "builds", "from sm_90", targets=("sm_80",))
        assert "3 range with another outcome" in kinds(cells_of(found), "builds", "from sm_75", targets=("sm_80",))

    def test_an_architecture_works_if_it_does_with_some_release(self) -> None:
        found = [*rows("xxxx", CUDA, target="sm_75"), *rows("xxww", CUDA)]
        assert kinds(cells_of(found), "builds since CUDA 12.8", "from sm_80") == []

    def test_a_range_has_no_value_that_was_not_tried(self) -> None:
        found = [*rows("xw w", TARGETS, axis="target"), row("rejected", target="sm_100")]
        known = row(target="sm_80", case="topic/other")
        assert kinds(cells_of(found), "builds", "on sm_75–sm_90; not on sm_70", targets=("sm_75",)) == []
        assert kinds(cells_of([*found, known]), "builds", "on sm_75–sm_90; not on sm_70", targets=("sm_75",)) == ["3 range over untried values"]  # fmt: skip
        assert kinds(cells_of([*found, known]), "builds", "on sm_75, sm_90; 0 of 2 others", targets=("sm_75",)) == []

    def test_a_border_between_architectures_needs_a_pair(self) -> None:
        found = [row("rejected", target="sm_70", cuda="12.0"), row(launched=True, target="sm_75", cuda="13.0")]
        assert kinds(cells_of(found), "builds", "from sm_75", targets=("sm_75",)) == ["1 change without a pair"]

    @pytest.mark.parametrize(
        ("note", "kind"),
        [
            ("CUDA 12.4 untried", []),
            ("", ["3 border over unnamed untried releases"]),
            ("CUDA 12.4 to 12.8 untried", ["3 untried, but tried"]),
        ],
    )
    def test_untried_releases_at_a_border_are_named(self, note: str, kind: list[str]) -> None:
        cells = cells_of([*rows("x ww", CUDA), *rows("wwww", CUDA, case="topic/other")])
        assert kinds(cells, "builds since CUDA 12.8", note) == kind

    def test_untried_architectures(self) -> None:
        found = rows("x nw", TARGETS, axis="target")
        assert kinds(cells_of(found), "builds", "from sm_90; sm_75 to sm_80 untried", targets=("sm_90",)) == []
        found = [row("rejected", target="sm_75", cuda="13.0"), *found]
        assert kinds(cells_of(found), "builds", "from sm_90; sm_75 to sm_80 untried", targets=("sm_90",)) == ["3 untried, but tried"]  # fmt: skip

    @pytest.mark.parametrize(
        ("outcomes", "text", "kind"),
        [
            ("nnnn", "not applicable", []),
            ("nnwn", "not applicable", ["3 not tried, but tried"]),
            ("   w", "not tried", ["3 not tried, but tried"]),
            ("nnnn", "builds", ["3 nothing tried"]),
        ],
    )
    def test_what_no_compiler_answered(self, outcomes: str, text: str, kind: list[str]) -> None:
        assert kinds(cells_of(rows(outcomes, CUDA)), text) == kind

    def test_not_applicable_needs_a_cell(self) -> None:
        cells = cells_of([row(target="sm_90")])
        assert kinds(cells, "not applicable") == ["3 not applicable, without a cell"]
        assert kinds(cells, "not tried") == []

    def test_phrases_of_some_releases(self) -> None:
        found = [*rows("wxxx", CUDA, backend="cupy-nvrtc", library="13.0.0"), *rows("wwwx", CUDA, backend="cupy-nvrtc", library="14.0.0")]  # fmt: skip
        cells = cells_of(found)
        assert kinds(cells, "14.0.0: builds up to CUDA 12.8", "13.0.0: builds up to CUDA 12.0", tool="cupy-nvrtc") == []
        assert kinds(cells, "14.0.0: builds up to CUDA 12.4", tool="cupy-nvrtc") != []
        assert kinds(cells, "14.0.0: builds up to CUDA 12.8", "13.0.0: builds up to CUDA 12.4", tool="cupy-nvrtc") != []


def test_runs_needs_a_launch() -> None:
    assert kinds(cells_of([row(launched=True)]), "runs") == []
    assert kinds(cells_of([row(launched=False)]), "builds") == []
    assert kinds(cells_of([row(launched=False)]), "runs") == ["4 runs, for builds"]


class TestGpu:
    """Rule 5."""

    @pytest.mark.parametrize(("outcome", "false"), [("built", True), ("rejected", False)])
    def test_never_speaks_of_every_target(self, outcome: str, false: bool) -> None:
        cells = cells_of([*rows("xxxx", CUDA, target="sm_90"), row(outcome, target="sm_90a")])
        found = kinds(cells, "never", targets=("sm_90",), gpu=("sm_90a",))
        assert found == ["5 never of a GPU, one of whose targets works"] * false
        assert kinds(cells, "never", targets=("sm_90",)) == []

    def test_a_note_is_another_kind(self) -> None:
        cells = cells_of([*rows("xxxx", CUDA, target="sm_90"), *rows("wwww", CUDA, target="sm_90a")])
        assert "5 never of a GPU, one of whose targets works, which only the note tells" in kinds(cells, "never", "builds on sm_90a; not on sm_90", targets=("sm_90",), gpu=("sm_90a",))  # fmt: skip

    def test_a_question_about_a_gpu(self) -> None:
        cells = cells_of([*rows("xxxx", CUDA, target="sm_90"), *rows("wwww", CUDA, target="sm_90a")])
        said = {"backend": "nvrtc", "library": "", "host_compiler": "", "targets": ["sm_90"], "kind": "never", "answer": "never", "note": "", "cells": []}  # fmt: skip
        works = {**said, "targets": ["sm_90a"], "kind": "builds", "answer": "builds"}
        chips = [{"kind": "target", "name": "h100", "values": ["sm_90", "sm_90a"]}]
        subjects = [found.subject for found in check_statements.of_finding("ask", "topic/one", "", [said], cells, chips)]  # fmt: skip
        assert [subject.gpu for subject in subjects if subject] == [("sm_90a",)]
        told = next(check_statements.of_finding("ask", "topic/one", "", [said, works], cells, chips))
        assert told.subject and told.subject.gpu == ()


class TestWords:
    def test_words_that_no_one_knows_are_told(self) -> None:
        assert kinds(cells_of([row()]), "works mostly") == ["unreadable words"]
        assert kinds(cells_of([row()]), "builds", "perhaps") == ["unreadable words"]

    @pytest.mark.parametrize("text", ["builds, but not with 13.0", "builds since then", "builds on sm_90 too"])
    def test_words_that_only_begin_as_a_statement_are_told(self, text: str) -> None:
        assert kinds(cells_of([row(launched=True)]), text) == ["unreadable words"]

    def test_a_question_restricts_a_statement(self) -> None:
        within = {"cuda": ranges_of("12.4, 12.8")}
        assert claims_of("does not build, 0 of 1", "with other versions: builds", within) == [
            Claim("none", count=(0, 1), word="does not build", within=within),
            Claim("all", word="builds"),
        ]

    def test_what_other_versions_do_not_link_is_no_claim_about_the_asked_one(self) -> None:
        within = {"cuda": ranges_of("12.9")}
        for note, expected in (("not linked with CUDA 12.8", within), ("with other versions: builds; not linked with CUDA 12.8", {})):  # fmt: skip
            (claim,) = (claim for claim in claims_of("builds", note, within) if claim.says == "unlinked")
            assert claim.within == expected

    def test_labels(self) -> None:
        cells = cells_of([row(variant=f"form={form},bytes={size}") for form in ("half", "float") for size in "12"])
        assert len(variants_of("topic/one", "", cells)) == 4
        assert variants_of("topic/one", "half, bytes=1 or 2", cells) == ("form=half,bytes=1", "form=half,bytes=2")
        assert variants_of("topic/one", "form=half, bytes=1; form=float, bytes=2", cells) == ("form=half,bytes=1", "form=float,bytes=2")  # fmt: skip

    def test_order(self) -> None:
        versions = ["3.4.1rc1", "3.4.1", "3.10.0", "12.0"]
        assert sorted(versions, key=order) == versions
        targets = ["sm_90", "sm_90a", "sm_100", "sm_100a"]
        assert sorted(targets, key=order) == targets
        assert inside("12.4", ((None, "12.4"),)) and not inside("12.10", ((None, "12.4"),))


def test_a_label_with_a_sign_of_equality_is_a_name() -> None:
    case = "cooperative/numba-9432"
    cells = cells_of([row(case=case, variant=f"cache={value}", backend="numba") for value in ("false", "true")])
    assert variants_of(case, "with cache=True", cells) == ("cache=true",)
    # A name wins over a parameter of the same name.
    case = "cupy/fuse-max"
    cells = cells_of([row(case=case, variant=f"type=half,fused={value}", backend="cupy-nvrtc") for value in ("false", "true")])  # fmt: skip
    assert variants_of(case, "type=half, fused", cells) == ("type=half,fused=true",)


def page(folder: Path, text: str, letters: str) -> Path:
    """Return the data of a page with one statement, and the document of its feature."""
    (folder / "data").mkdir(parents=True)
    data = {"columns": [["nvrtc", "NVRTC", "nvrtc", ""]], "features": [{"case": "topic/one"}], "vocabulary": {"architectures": {"a100": ["sm_80"]}}}  # fmt: skip
    part = {"verdicts": [["since", text, ""]], "grids": [[[""], list(CUDA), letters]], "lines": [[0, "", [], [[0, 0, 0]]]], "itself": []}  # fmt: skip
    for name, value in (("answers", data), ("answers-sm_80", part)):
        (folder / f"data/{name}.js").write_bytes(script(name, json.dumps(value)))
    statement = {"variants": "", "backend": "nvrtc", "library": "", "host_compiler": "", "targets": ["sm_80"], "kind": "since", "answer": text, "note": "", "cells": []}  # fmt: skip
    (folder / "api/v1/features").mkdir(parents=True)
    (folder / "api/v1/features/topic-one.json").write_text(json.dumps({"case": "topic/one", "statements": [statement]}))
    return folder


@pytest.mark.parametrize(
    ("text", "letters", "said", "false"),
    [
        ("builds since CUDA 12.8", "xxww", "", 0),
        ("builds since CUDA 12.4", "xxww", "range with another outcome", 2),
        ("builds since CUDA 12.8", "xwww", "another letter in the grid", 1),
    ],
)
def test_the_script(tmp_path: Path, text: str, letters: str, said: str, false: int) -> None:
    pd.DataFrame(rows("xxww", CUDA)).to_parquet(tmp_path / "results.parquet")
    command = [sys.executable, str(ROOT / ".ci/check_statements.py"), str(tmp_path / "results.parquet"), "--questions", "0"]  # fmt: skip
    done = subprocess.run([*command, "--page", str(page(tmp_path / "page", text, letters))], capture_output=True, text=True, timeout=120)  # fmt: skip
    assert (done.returncode, done.stderr) == (int(bool(said)), "")
    assert said in done.stdout and f"2 statements, {false} of them false" in done.stdout


def test_a_statement_of_no_cell_is_false() -> None:
    cells = cells_of([row()])
    assert kinds(cells, "builds", tool="nvcc") == ["no such subject"]
    statement = Statement("ask", Subject("topic/one", ("",), "nvrtc", "", ("sm_80",)), "builds", "builds", "")
    assert [found.kind for found in judge(replace(statement, cells=("gone",)), cells, 3)][:1] == ["no such cell"]


@pytest.mark.slow
def test_answers_to_generated_questions_are_true(tmp_path: Path) -> None:
    """A sample; the nightly run checks the whole page and 1,000 questions."""
    done = subprocess.run(
        [sys.executable, ROOT / ".ci/check_statements.py", "--no-page", "--questions", "25", "--seed", "7"], capture_output=True, text=True, cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* statements, 0 of them false$", done.stdout, re.MULTILINE)
