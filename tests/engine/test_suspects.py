"""Cells retried alone, on a fake cluster that loses workers on demand; `tests/cli/test_dask.py` has a real one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cluster.client import WHY, Done, Task, one_by_one
from harness.cluster.worker import WorkerResults
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef, Variant


def task(name: str, device: str = "") -> Task:
    case = Case(name=name, path=Path(name), title=name, sources={"cuda": Path("kernel.cu")}, variants=())
    toolchain = Toolchain(
        backend="nvrtc", library="", toolkit=ToolkitRef(release="12.4", headers="12.4"), device=device
    )
    cell = Cell(
        case=case, variant=Variant(labels={}, definitions={}), toolchain=toolchain, target=Target.parse("sm_80")
    )
    return Task((cell,), 1)


class Fake:
    """A cluster of two workers. If a cell kills a worker, the worker returns under another name."""

    def __init__(self, takes: Mapping[str, int]) -> None:
        self.takes = dict(takes)
        self.names = ["one", "two"]
        self.at: dict[str, tuple[Task, str]] = {}
        self.forgotten: list[Any] = []

    def workers(self) -> dict[str, Any]:
        return dict.fromkeys(self.names)

    def runs(self, task: Task, worker: str) -> bool:
        return not task.cells[0].toolchain.device

    def submit(self, task: Task, worker: str = "") -> Any:
        assert worker in self.names and worker not in self.at, "two cells on one worker"
        self.at[worker] = task, f"{task.cells[0].case.name} on {worker}"
        return self.at[worker][1]

    def forget(self, future: Any) -> None:
        self.forgotten.append(future)

    def ended(self, seconds: float) -> tuple[Task, Any] | None:
        worker, (task, future) = self.at.popitem()
        name = task.cells[0].case.name
        if self.takes.get(name):
            self.takes[name] -= 1
            self.names.append(f"{worker} again")
            self.names.remove(worker)
            return None
        return task, future

    def answer(self, task: Task, future: Any) -> Done | None:
        return Done(task, WorkerResults())


def outcome(cluster: Fake, *tasks: Task) -> dict[str, str]:
    return {done.task.cells[0].case.name: done.problem for done in one_by_one(cluster, tasks)}


def test_the_cell_that_takes_workers_with_it_is_told_from_the_others() -> None:
    found = outcome(Fake({"a/bad": 9}), task("a/good"), task("a/bad"), task("a/other"))
    assert found == {"a/good": "", "a/bad": WHY, "a/other": ""}


def test_one_worker_may_be_lost_by_chance() -> None:
    cluster = Fake({"a/good": 1})
    assert outcome(cluster, task("a/good")) == {"a/good": ""}
    assert len(cluster.forgotten) == 2


def test_cells_whose_device_has_gone_are_not_waited_for() -> None:
    assert outcome(Fake({}), task("a/gpu", "NVIDIA H200"), task("a/good")) == {"a/good": "", "a/gpu": WHY}


def test_there_may_be_none() -> None:
    assert outcome(Fake({})) == {}
