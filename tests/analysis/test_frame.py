"""Cells as a table: one row per cell, in the order of the matrix, with typed columns."""

from __future__ import annotations

import json

import pytest
from record_builders import BUILT, built, cell, plan, record, rejected

from harness.analysis.frame import COLUMNS, cells_frame, kernels_frame, make_frame, ordered, outcome_of
from harness.matrix.axes import PLACE
from harness.model import Artifact, KernelResources, Outcome, Stage, Status
from harness.records import merge

UNAVAILABLE = Outcome(status=Status.UNAVAILABLE, reason="not there")
PTX = Artifact(format="ptx", target="compute_80", bytes=10, sha256="")


def kernels(*registers: int) -> Outcome:
    return built(
        artifact=Artifact(
            format="cubin", target="sm_80", bytes=1, sha256="",
            kernels=tuple(KernelResources(name=f"k{n}", num_regs=n, shared_bytes=None, spill_bytes=0) for n in registers),
        )
    )  # fmt: skip


def test_a_frame_of_nothing_has_all_columns() -> None:
    table = make_frame([])
    assert table.empty
    assert list(table.columns) == COLUMNS


def test_what_stands_in_a_row() -> None:
    of = cell(headers="13.0", library="13.6.0", variant={"n": 1})
    row = make_frame([record(of, kernels(40, 96), run="r")]).iloc[0]
    assert [row[name] for name in ("cell", "topic", "case", "variant")] == [of.id, "wmma", "wmma/fragments", "n=1"]
    assert [row[name] for name in ("toolkit", "release", "headers")] == ["12.4+headers13.0", "12.4", "13.0"]
    assert [row[name] for name in ("mark", "outcome", "verdict", "run")] == ["built", "built", "pass", "r"]
    assert (row["registers"], row["spills"], row["message"]) == (96, 0, "")
    assert [name for name in ("shared", "signal") if row.isna()[name]] == ["shared", "signal"]
    assert len(json.loads(row["kernels"])) == 2


def test_a_refusal_has_its_first_message_on_one_line_and_its_stage() -> None:
    row = make_frame([record(outcome=rejected("one\x1b[31m\ntwo"))]).iloc[0]
    assert row["outcome"] == "rejected at compile"
    assert row["message"].startswith("one")
    assert "\n" not in row["message"]
    assert "\x1b" not in row["message"]
    assert row.isna()["registers"]


def test_a_cell_that_never_arrived_has_a_row() -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90")]
    table = cells_frame(merge([record(cells[0])], [plan(*cells)]))
    assert list(table["outcome"]) == ["built", "missing"]
    assert table.loc[1, "target"] == "sm_90"
    assert (table.loc[1, "status"], bool(table.isna().loc[1, "seconds"])) == ("", True)


def test_of_several_records_of_a_cell_a_compilers_answer_counts_and_then_the_last() -> None:
    first, second = record(outcome=rejected(), run="1"), record(outcome=built(), run="2")
    nothing = record(outcome=UNAVAILABLE, run="3")
    for records, run in (([first, second], "2"), ([second, first], "1"), ([second, nothing], "2"), ([nothing], "3")):
        table = make_frame(records)
        assert list(table["run"]) == [run]
        assert not table.duplicated(PLACE).any()


def test_what_other_runs_say_stands_beside_it() -> None:
    table = cells_frame(merge([record(outcome=rejected(), run="1"), record(outcome=built(), run="2")], []))
    assert list(table["outcome"]) == ["built"]
    assert "rejected" in table.loc[0, "others"]


def test_rows_are_in_the_order_of_the_matrix_whatever_the_order_of_the_records() -> None:
    wanted = [
        cell(backend="nvrtc", library="", toolkit="9.2", target="sm_90"),
        cell(backend="nvrtc", library="", toolkit="12.4", target="sm_90"),
        cell(library="9.0.0", target="sm_90"),
        cell(library="13.0.0rc1", target="sm_90"),
        cell(library="13.0.0", target="sm_90"),
        cell(library="13.0.0", target="sm_90a"),
        cell(library="13.0.0", target="sm_100"),
        cell(library="13.0.0", target="compute_80"),
        cell("wmma/k16", library="9.0.0"),
    ]
    table = make_frame([record(of, built(str(of.target))) for of in reversed(wanted)])
    assert list(table["cell"]) == [of.id for of in wanted]
    assert list(ordered(table.sample(frac=1, random_state=1))["cell"]) == [of.id for of in wanted]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (built(), "built"),
        (built(artifact=PTX, stage=Stage.COMPILE, stages=(Stage.COMPILE,)), "compiled"),
        (rejected(stage=Stage.LINK), "rejected at link"),
        (Outcome(status=Status.CRASHED), "crashed"),
        (Outcome(status=Status.TIMED_OUT, stage=Stage.ASSEMBLE), "timed_out at assemble"),
        (Outcome(status=Status.UNSUPPORTED), "unsupported"),
        (UNAVAILABLE, "unavailable"),
    ],
)
def test_what_happened_in_one_phrase(outcome: Outcome, said: str) -> None:
    made = record(outcome=outcome, expected=BUILT)
    assert outcome_of(made) == said
    assert list(make_frame([made])["outcome"]) == [said]


def test_one_row_a_kernel() -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90", "sm_100")]
    table = make_frame([record(cells[0], kernels(40, 96)), record(cells[1], rejected()), record(cells[2], kernels(7))])
    long = kernels_frame(table)
    assert list(zip(long["target"], long["name"], long["num_regs"], strict=True)) == [
        ("sm_80", "k40", 40),
        ("sm_80", "k96", 96),
        ("sm_100", "k7", 7),
    ]
