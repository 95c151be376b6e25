"""Cells as tasks for a cluster."""

from __future__ import annotations

from record_builders import cell

from harness.cluster.client import tasks_of
from harness.engine.machine import Need
from harness.model import Cell


def cells(count: int, seconds: float, **fields: str) -> list[tuple[Cell, Need]]:
    return [(cell(variant={"n": number}, **fields), Need(1 << 20, seconds)) for number in range(count)]


def test_every_cell_is_in_one_task_of_its_toolchain() -> None:
    both = cells(100, 0.1) + cells(30, 0.1, toolkit="13.0")
    tasks = tasks_of(both, 4)
    assert sorted(cell.id for task in tasks for cell in task.cells) == sorted(cell.id for cell, _ in both)
    assert all(len({cell.toolchain for cell in task.cells}) == 1 for task in tasks)
    first = [task.cells[0].toolchain.toolkit.release for task in tasks]
    assert first == sorted(first), "those of one toolchain stand together"


def test_tasks_are_small_enough_that_all_workers_end_together() -> None:
    assert len(tasks_of(cells(64, 0.1), 4)) >= 32
    assert {len(task.cells) for task in tasks_of(cells(8, 30.0), 2)} == {1}


def test_tasks_are_large_enough_for_a_scheduler_of_many() -> None:
    assert len(tasks_of(cells(10_000, 0.001), 4)) == 200


def test_long_cells_come_first_and_a_task_needs_what_its_largest_cell_does() -> None:
    slow = (cell(variant={"n": 99}), Need(3 << 30, 60.0))
    tasks = tasks_of([*cells(20, 0.1), slow], 1)
    assert tasks[0].cells == (slow[0],)
    assert tasks[0].memory == 3 << 30
    assert tasks_of([], 4) == []
