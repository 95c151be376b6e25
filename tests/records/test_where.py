"""Records that a condition selects, and names that it can use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from record_builders import built, cell, plan, record, rejected

from harness.errors import NothingToRun, UsageError
from harness.model import Cell
from harness.model.cell import CELLS
from harness.model.condition import NAMES, Spelled
from harness.records import merge
from harness.records.record_names import choose, chooser, facts_of


def virtual(of: Cell) -> dict[str, Any]:
    """A record in the form of a run without a device."""
    return {**record(of), "device": {"virtual": True}}


@pytest.mark.parametrize(
    "of",
    [
        cell(),
        cell(variant={"shape": "m16n16k8", "bytes": 49156, "cached": True}),
        cell(backend="nvrtc", library="", toolkit="13.5", headers="13.0", target="compute_90"),
        cell(library="14.2.0+wheels", target="sm_120f"),
        cell(backend="numba-cuda", library="0.15.0", target="sm_90a"),
    ],
    ids=lambda of: of.id,
)
def test_a_record_has_the_facts_of_its_cell(of: Cell) -> None:
    facts, found = of.facts(), facts_of(virtual(of))
    for name in NAMES:
        assert found.get(name) == facts.get(name), name
    assert {name: found[name] for name in of.variant.labels} == {
        name: Spelled(str(value).lower() if value is True else value) for name, value in of.variant.labels.items()
    }


def test_what_a_plan_and_a_history_have_is_enough_for_most() -> None:
    of = cell(variant={"size": 4}, target="sm_90a")
    planned = plan(of)["cells"][0]
    found = facts_of(planned)
    assert (found["mark"], found["expected"]) == ("missing", False)
    known = [name for name in facts_of(virtual(of)) if name in CELLS or name in of.variant.labels]
    assert {name: found[name] for name in known} == {name: facts_of(virtual(of))[name] for name in known}
    assert not {"status", "stage", "verdict", "registers", "seconds"} & set(found)
    assert facts_of({**planned, "cell": f"{of.id} on NVIDIA H200"})["device"] is True


def test_a_program_without_a_case_has_no_parameters() -> None:
    program = {**virtual(cell()), "program": "ab" * 6, "variant": "-DN=4 -std=c++17"}
    assert not any(isinstance(value, Spelled) for value in facts_of(program).values())


RECORDS = [
    record(cell(variant={"shape": "a"}, target="sm_80")),
    record(cell(variant={"shape": "a"}, target="sm_90"), rejected()),
    record(cell(variant={"shape": "b"}, backend="nvrtc", library="", target="sm_90"), rejected("too much shared data")),
    record(cell("sync/grid", target="sm_90a"), built("sm_90a")),
]


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ('status == "rejected"', [1, 2]),
        ('verdict == "fail" and backend == "nvrtc"', [2]),
        ('stage == "compile" and not "shared" in message', [1]),
        ('shape == "a"', [0, 1]),
        ('topic == "sync" or shape == "b"', [2, 3]),
        ('cc >= "9.0" and suffix == ""', [1, 2]),
        ('cupy >= "13" and library == "13.6.0"', [0, 1, 3]),
        ('environment == "cupy13" and case in ("sync/grid",)', [3]),
        ('mark == "fail" or mark == "rejected"', [1, 2]),
        ("expected", [0, 3]),
        ("registers >= 40", [0, 3]),
        ("not (registers > 40 or shared > 1e6 or spills == 7 or seconds > 1e6)", [0, 1, 2, 3]),
        ('not (host_compiler != "" or run == "none" or title == "none" or "none" in features)', [0, 1, 2, 3]),
    ],
)
def test_records_are_chosen(where: str, places: list[int]) -> None:
    holds = chooser(where, RECORDS)
    assert [place for place, each in enumerate(RECORDS) if holds(each)] == places
    assert choose(merge(RECORDS, []), where).records == merge([RECORDS[place] for place in places], []).records


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ('status == "build"', r'^--where, character 11: status is never \'build\' \(did you mean "built"\?\)'),
        ('verdict == "failed"', r'did you mean "fail"'),
        ('shap == "a"', r'^--where, character 1: unknown name \'shap\' \(did you mean "shape"\?\)'),
        ('backend == "nvcrtc"', r'did you mean "nvrtc"'),
    ],
)
def test_what_cannot_be_read_is_told(where: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        chooser(where, RECORDS)


def test_a_cell_that_is_left_out_is_not_missing_and_one_that_never_arrived_has_no_outcome() -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90", "sm_100")]
    merged = merge([record(cells[0]), record(cells[1], rejected())], [plan(*cells)])
    chosen = choose(merged, 'not status == "built"')
    assert [item["cell"] for item in chosen.records] == [cells[1].id]
    assert [item["cell"] for item in chosen.missing] == [cells[2].id]
    assert [item["cell"] for item in chosen.plans[0]["cells"]] == [cells[1].id, cells[2].id]
    again = merge(chosen.records, chosen.plans)
    assert (again.records, again.missing) == (chosen.records, chosen.missing)
    assert choose(merged, 'status != "built"').missing == ()


def test_the_record_that_counts_decides() -> None:
    of = cell()
    merged = merge(
        [record(of, run="run-1"), record(of, rejected(), run="run-2")],
        [plan(of, run="run-1", day=1), plan(of, run="run-2", day=2)],
    )
    assert len(merged.conflicts) == 1
    with pytest.raises(NothingToRun, match=r'^no cell is left of 1 --where status == "built"$') as caught:
        choose(merged, 'status == "built"')
    assert caught.value.exit_code == 3
    assert choose(merged, 'status == "rejected"') == merged
    assert choose(replace(merged, plans=()), 'status == "rejected"').conflicts == merged.conflicts
