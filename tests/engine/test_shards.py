"""Sharded runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.engine.plan import Shard, cost_of, costs_of
from harness.errors import NothingToRun, UsageError
from harness.model import Cell
from harness.records import make_plan
from harness.records.plan import check_plan, missing_shards
from harness.records.record import RecordError


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Cell]:
    folder = tmp_path_factory.mktemp("cases")
    return list(_cells(folder))


def _cells(folder: Path) -> Iterator[Cell]:
    for number in range(12):
        case = make_case(folder / "kernel.cu", f"t/c{number}")
        for target in ("sm_75", "sm_80", "sm_90"):
            yield make_cell(case, target=target)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "2/0", "a/b", "-1/2", "1/2/3", "1.0/2", ""])
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a part such as 2/5"):
        Shard.parse(text)


@pytest.mark.parametrize("of", [1, 2, 3, 5, 7, 35, 36])
def test_the_parts_are_the_whole(cells: list[Cell], of: int) -> None:
    parts = [Shard(number, of).take(cells) for number in range(1, of + 1)]
    ids = [cell.id for part in parts for cell in part]
    assert sorted(ids) == sorted(cell.id for cell in cells)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1  # all cost the same


def test_a_part_keeps_the_order_and_does_not_depend_on_it(cells: list[Cell]) -> None:
    part = Shard(2, 5).take(cells)
    assert [cell.id for cell in cells if cell in part] == [cell.id for cell in part]
    assert {cell.id for cell in Shard(2, 5).take(cells[::-1])} == {cell.id for cell in part}


def test_parts_take_equally_long_by_what_cells_took(cells: list[Cell]) -> None:
    records = [
        {
            "case": cell.case.name,
            "variant": "",
            "backend": "nvrtc",
            "seconds": 30.0 if cell.case.name == "t/c3" else 1.0,
        }
        for cell in cells
    ]
    costs = costs_of(records)
    sums = [sum(cost_of(cell, costs) for cell in Shard(number, 3).take(cells, costs)) for number in (1, 2, 3)]
    assert max(sums) - min(sums) <= 1.0
    plain = [sum(cost_of(cell, costs) for cell in Shard(number, 3).take(cells)) for number in (1, 2, 3)]
    assert max(sums) <= max(plain)


def test_more_parts_than_cells(cells: list[Cell]) -> None:
    with pytest.raises(NothingToRun, match="nothing is left for part 3 of 3: there are 2 cells"):
        Shard(3, 3).take(cells[:2])


def test_merging_names_the_parts_that_are_missing(cells: list[Cell]) -> None:
    def plan(number: int, of: int) -> dict[str, object]:
        shard = Shard(number, of)
        made = make_plan(shard.take(cells), run=f"r{number}", environment="local", shard=shard.in_plan(cells))
        check_plan(made)
        return made

    assert missing_shards([plan(1, 4), plan(3, 4)]) == ["parts 2, 4 of 4 of the run in local never arrived (--shard)"]
    assert missing_shards([plan(1, 2), plan(2, 2)]) == []
    assert missing_shards([plan(1, 2), plan(2, 3)]) == [
        "part 2 of 2 of the run in local never arrived (--shard)",
        "parts 1, 3 of 3 of the run in local never arrived (--shard)",
    ]
    assert missing_shards([make_plan(cells, run="r", environment="local")]) == []


def test_parts_by_different_costs_are_not_one_run(cells: list[Cell]) -> None:
    """One machine knows the earlier times of cells, the other does not: some cells belong to no shard."""
    costs = {(cells[0].case.name, "", cells[0].toolchain.backend): 30.0}
    first, second = Shard(1, 2), Shard(2, 2)
    parts = [(first, None), (second, costs)]
    assert {cell.id for shard, told in parts for cell in shard.take(cells, told)} < {cell.id for cell in cells}
    plans = [
        make_plan(shard.take(cells, told), run="r", environment="local", shard=shard.in_plan(cells, told))
        for shard, told in parts
    ]
    sentences = missing_shards(plans)
    assert len(sentences) == 2
    assert all("every part has to be given the same" in sentence for sentence in sentences)
    assert (
        missing_shards([make_plan(cells, run="r", environment="local", shard=Shard(1, 1).in_plan(cells, costs))]) == []
    )


@pytest.mark.parametrize(
    "shard",
    [
        None,
        [],
        {},
        {"number": 1, "of": 2},
        {"number": 3, "of": 2, "whole": "x"},
        {"number": True, "of": 2, "whole": "x"},
    ],
)
def test_a_plan_with_another_shard_is_refused(cells: list[Cell], shard: object) -> None:
    made = make_plan(cells[:1], run="r", environment="local")
    made["shard"] = shard
    with pytest.raises(RecordError, match="shard: must be"):
        check_plan(made)
