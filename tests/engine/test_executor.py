"""Threads of this process run prepared cells."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.executor import Run, ThreadExecutor, _Queue
from harness.engine.prepared import PreparedCell
from harness.engine.resolve import Resolver
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.toolkits import Installed, ToolkitStore

pytestmark = pytest.mark.compilers

PLAIN = Environment(name="mine", python=sys.executable, version="3.11.7", distributions={})


@pytest.fixture
def cell(tmp_path: Path, toolkit: Callable[[str], Installed]) -> Cell:
    toolkit("12.4")
    source = tmp_path / "kernel.cu"
    source.write_text('extern "C" __global__ void k(float *x) { *x = 1; }\n')
    return make_cell(make_case(source, entries={"k": ""}), environment=PLAIN)


def prepared_of(store: ToolkitStore, cell: Cell) -> PreparedCell:
    resolver = Resolver(RunContext(PLAIN, store, None))
    prepared = resolver.resolve(cell)
    resolver.close()
    assert isinstance(prepared, PreparedCell)
    return prepared


def test_a_run_may_be_asked_again_and_keeps_its_fork_servers(store: ToolkitStore, cell: Cell) -> None:
    with Run(RunContext(PLAIN, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        first = run.result(cell)
        assert isinstance(run.executor, ThreadExecutor)
        servers = list(run.executor.runners[0].fork_servers.running.values())
        second = run.result(make_cell(cell.case, target="sm_90", environment=PLAIN))
        assert list(run.executor.runners[0].fork_servers.running.values()) == servers
    assert (first.outcome.status, second.outcome.status) == ("built", "built")
    assert servers[0].process.poll() is not None


def test_who_stops_listening_ends_what_is_under_way(store: ToolkitStore, cell: Cell) -> None:
    with Run(RunContext(PLAIN, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        targets = ("sm_75", "sm_80", "sm_90")
        results = run.results([make_cell(cell.case, target=target, environment=PLAIN) for target in targets])
        next(results)
        results.close()  # type: ignore[attr-defined]
        assert isinstance(run.executor, ThreadExecutor)
        assert not any(runner.fork_servers.running for runner in run.executor.runners)


def test_a_runner_stays_with_a_toolchain_and_then_helps_with_the_longest(store: ToolkitStore, cell: Cell) -> None:
    prepared = prepared_of(store, cell)

    def of(name: str) -> PreparedCell:
        toolchain = replace(cell.toolchain, library=name)
        return replace(prepared, cell=replace(cell, toolchain=toolchain))

    work = _Queue()
    work.add([of("a"), of("a"), of("b"), of("b"), of("b")])
    first = work.next(None)
    assert first is not None and first.cell.toolchain.library == "b"
    other = work.next(None)
    assert other is not None and other.cell.toolchain.library == "a"
    current = first
    order: list[str] = []
    while len(order) < 3 and (found := work.next(current)):
        order.append(found.cell.toolchain.library)
        current = found
    assert order == ["b", "b", "a"]
    work.stop()
    assert work.next(current) is None


def test_cells_for_which_a_fork_server_prepares_the_same_come_one_after_another(
    store: ToolkitStore, cell: Cell, tmp_path: Path
) -> None:
    prepared = prepared_of(store, cell)
    includes = tmp_path / "includes.cu"
    includes.write_text("// first\n#include <cuda_fp16.h>\n")

    def of(target: str, backend: str, source: Path) -> PreparedCell:
        toolchain = replace(prepared.toolchain, toolchain=replace(cell.toolchain, backend=backend))
        job = replace(prepared.job, target=target, source=source)
        return replace(prepared, cell=replace(cell, toolchain=toolchain.toolchain), toolchain=toolchain, job=job)

    def order(backend: str, source: Path) -> list[str]:
        """Return the order in which two runners take cells in turn."""
        work = _Queue()
        work.add([of(target, backend, source) for _ in range(3) for target in ("sm_80", "sm_90", "sm_100")])
        runners: list[PreparedCell | None] = [None, None]
        found = []
        for turn in range(9):
            runners[turn % 2] = taken = work.next(runners[turn % 2])
            assert taken is not None
            found.append(taken.job.target)
        return found

    assert order("nvrtc", cell.case.sources["cuda"]) == ["sm_80", "sm_90", "sm_100"] * 3
    assert order("nvcc", includes) == ["sm_80", "sm_90", "sm_100"] * 3
    for taken in (order("cupy-jitify", cell.case.sources["cuda"]), order("nvrtc", includes)):
        assert taken[::2] == ["sm_80"] * 3 + ["sm_100"] * 2
        assert taken[1::2] == ["sm_90"] * 3 + ["sm_100"]


def test_a_fork_server_is_told_how_many_cells_alike_are_to_come(
    store: ToolkitStore, cell: Cell, tmp_path: Path
) -> None:
    prepared = prepared_of(store, cell)

    def alike(one: PreparedCell) -> list[int]:
        work = _Queue()
        work.add([one] * 4)
        runners: list[PreparedCell | None] = [None, None]
        found = []
        for turn in range(4):
            runners[turn % 2] = taken = work.next(runners[turn % 2])
            assert taken is not None
            found.append(work.alike(taken))
        return found

    assert alike(prepared) == [-1] * 4
    includes = tmp_path / "includes.cu"
    includes.write_text("#include <cuda_fp16.h>\n")
    prepared = replace(prepared, job=replace(prepared.job, source=includes))
    assert alike(prepared) == [3, 1, 0, 0]
    assert alike(replace(prepared, limits=Limits(memory=2 << 30))) == [-1] * 4
