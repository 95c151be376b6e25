"""A cell is resolved once: to its result, or to all that a compiler has to be asked."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case, make_cell, write_case

from harness.cases import load_cases
from harness.engine.cache import ResultCache
from harness.engine.context import RunContext
from harness.engine.environment import Environment
from harness.engine.executor import ThreadExecutor, _Queue
from harness.engine.resolve import Resolver
from harness.engine.result import PreparedCell, Result
from harness.engine.run import Run
from harness.model import Cell, Outcome, Status
from harness.protocol.wire import Limits
from harness.toolkits import Installed, ToolkitStore

PLAIN = Environment(name="mine", python=sys.executable, version="3.11.7", distributions={})
TEXT = 'extern "C" __global__ void k(float *x) { *x = 1; }\n'


@pytest.fixture
def resolver(store: ToolkitStore) -> Iterator[Resolver]:
    made = Resolver(RunContext(PLAIN, store, None, Limits(seconds=120)))
    yield made
    made.close()


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    source = tmp_path / "kernel.cu"
    source.write_text(TEXT)
    return make_cell(make_case(source, entries={"k": ""}), environment=PLAIN)


def test_a_rule_of_the_case_settles_a_cell(resolver: Resolver, tmp_path: Path) -> None:
    rule = '[[unsupported]]\nwhen = "cc < \\"9.0\\""\nreason = "too old"\n'
    write_case(tmp_path, "made/rule", TEXT, rule)
    (case,) = load_cases(tmp_path)
    resolved = resolver.resolve(make_cell(case, environment=PLAIN))
    assert isinstance(resolved, Result)
    assert (resolved.outcome.status, resolved.outcome.reason, resolved.key) == ("unsupported", "too old", "")


def test_what_is_not_installed_settles_a_cell(store: ToolkitStore, cell: Cell, tmp_path: Path) -> None:
    resolver = Resolver(RunContext(PLAIN, ToolkitStore(tmp_path / "none"), None))
    resolved = resolver.resolve(cell)
    resolver.close()
    assert isinstance(resolved, Result)
    assert resolved.outcome.status == "unavailable"
    assert "cumatrix toolkits install 12.4" in resolved.outcome.reason


@pytest.mark.compilers
class TestPrepared:
    @pytest.fixture(autouse=True)
    def _toolkit(self, toolkit: Callable[[str], Installed]) -> None:
        toolkit("12.4")

    def test_what_an_executor_is_given_and_gives_can_be_pickled(self, resolver: Resolver, cell: Cell) -> None:
        prepared = resolver.resolve(cell)
        assert isinstance(prepared, PreparedCell)
        again = pickle.loads(pickle.dumps(prepared))
        assert again == prepared
        executor = ThreadExecutor(resolver)
        try:
            (result,) = executor.run([again])
        finally:
            executor.close()
        assert result.outcome.status == "built"
        assert pickle.loads(pickle.dumps(result)) == result

    def test_every_case_of_the_library_can_be_pickled_as_it_is_prepared(self, resolver: Resolver) -> None:
        root = Path(__file__).parents[2] / "cases"
        found = 0
        for case in load_cases(root):
            if "cuda" not in case.sources or case.libraries:
                continue
            one = replace(make_cell(case, environment=PLAIN), variant=case.variants[-1])
            resolved = resolver.resolve(one)
            assert pickle.loads(pickle.dumps(resolved)) == resolved
            found += isinstance(resolved, PreparedCell)
        assert found > 5

    def test_another_executor_takes_the_place_of_threads(self, store: ToolkitStore, cell: Cell) -> None:
        class Elsewhere:
            """A fake: it hands prepared cells on as bytes and says that all were built."""

            def __init__(self) -> None:
                self.seen: list[PreparedCell] = []
                self.closed = False

            def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
                self.seen += pickle.loads(pickle.dumps(list(cells)))
                for each in cells:
                    yield Result(each.cell, Outcome(status=Status.BUILT), key="elsewhere")

            def close(self) -> None:
                self.closed = True

        executor = Elsewhere()
        with Run(RunContext(PLAIN, store, None), executor=executor) as run:
            assert run.result(cell).key == "elsewhere"
        assert [each.cell.id for each in executor.seen] == [cell.id]
        assert executor.closed

    def test_a_run_may_be_asked_again_and_keeps_its_fork_servers(self, store: ToolkitStore, cell: Cell) -> None:
        with Run(RunContext(PLAIN, store, None, Limits(seconds=120))) as run:
            first = run.result(cell)
            assert isinstance(run.executor, ThreadExecutor)
            servers = list(run.executor.runners[0].fork_servers.running.values())
            second = run.result(make_cell(cell.case, target="sm_90", environment=PLAIN))
            assert list(run.executor.runners[0].fork_servers.running.values()) == servers
        assert (first.outcome.status, second.outcome.status) == ("built", "built")
        assert servers[0].process.poll() is not None

    def test_a_fork_server_whose_words_could_not_be_kept_serves_no_cell(
        self, store: ToolkitStore, cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The disk is full just then, which is a fake."""
        cache = ResultCache(tmp_path / "cache")

        def full(*_: object) -> None:
            monkeypatch.undo()
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(cache, "keep_fact", full)
        resolver = Resolver(RunContext(PLAIN, store, cache, Limits(seconds=120)))
        runner = ThreadExecutor(resolver).runners[0]
        prepared = resolver.resolve(cell)
        assert isinstance(prepared, PreparedCell)
        try:
            with pytest.raises(OSError, match="No space left"):
                runner.run(prepared)
            assert not runner.fork_servers.running
            assert runner.run(prepared).outcome.status == "built"
        finally:
            runner.close()
            resolver.close()

    def test_who_stops_listening_ends_what_is_under_way(self, store: ToolkitStore, cell: Cell) -> None:
        with Run(RunContext(PLAIN, store, None, Limits(seconds=120))) as run:
            targets = ("sm_75", "sm_80", "sm_90")
            results = run.results([make_cell(cell.case, target=target, environment=PLAIN) for target in targets])
            next(results)
            results.close()  # type: ignore[attr-defined]
            assert isinstance(run.executor, ThreadExecutor)
            assert not any(runner.fork_servers.running for runner in run.executor.runners)


@pytest.mark.compilers
def test_a_runner_stays_with_a_toolchain_and_then_helps_with_the_longest(
    resolver: Resolver, cell: Cell, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    prepared = resolver.resolve(cell)
    assert isinstance(prepared, PreparedCell)

    def of(name: str) -> PreparedCell:
        toolchain = replace(cell.toolchain, library=name)
        return replace(prepared, cell=replace(cell, toolchain=toolchain))

    work = _Queue()
    work.add([of("a"), of("a"), of("b"), of("b"), of("b")])
    first = work.next(None)
    assert first is not None and first.cell.toolchain.library == "b"
    other = work.next(None)
    assert other is not None and other.cell.toolchain.library == "a"
    current = first.cell.toolchain
    order: list[str] = []
    while len(order) < 3 and (found := work.next(current)):
        order.append(found.cell.toolchain.library)
        current = found.cell.toolchain
    assert order == ["b", "b", "a"]
    work.stop()
    assert work.next(current) is None
