"""Resolving a cell once: to its result, or to the compile job."""

from __future__ import annotations

import os
import pickle
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case, make_cell, write_case

from harness import native
from harness.cases.discovery import load_cases
from harness.engine.cache import ResultCache
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.executor import Run, ThreadExecutor
from harness.engine.file_states import Files
from harness.engine.fork_server import Compiled
from harness.engine.prepared import PreparedCell, Result
from harness.engine.reads import Reads
from harness.engine.resolve import Resolver
from harness.model import Cell, Headers, Outcome, Status, Target
from harness.protocol.messages import Limits, Ready
from harness.toolkits import LIBRARIES, Installed, ToolkitStore

PLAIN = Environment(name="mine", python=sys.executable, version="3.11.7", distributions={})
TEXT = 'extern "C" __global__ void k(float *x) { *x = 1; }\n'


@pytest.fixture
def resolver(store: ToolkitStore) -> Iterator[Resolver]:
    made = Resolver(RunContext(PLAIN, store, None, RunRequest(limits=Limits(seconds=120))))
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
            if "cuda" not in case.sources or case.libraries or (case.backends and "nvrtc" not in case.backends):
                continue
            one = replace(make_cell(case, environment=PLAIN), variant=case.variants[-1])
            resolved = resolver.resolve(one)
            assert pickle.loads(pickle.dumps(resolved)) == resolved
            found += isinstance(resolved, PreparedCell)
        assert found > 5

    def test_another_executor_takes_the_place_of_threads(self, store: ToolkitStore, cell: Cell) -> None:
        class Elsewhere:
            """A fake that passes prepared cells on as bytes and reports all as built."""

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


def test_every_rule_of_the_case_counts(resolver: Resolver, tmp_path: Path) -> None:
    rules = "".join(
        f"[[unsupported]]\nwhen = 'cc {when}'\nreason = \"{reason}\"\n"
        for when, reason in (('< "7.0"', "first"), ('== "8.0"', "second"), ('> "9.0"', "third"))
    )
    write_case(tmp_path, "made/rules", TEXT, rules)
    (case,) = load_cases(tmp_path)
    found = [
        resolver.resolve(make_cell(case, target=target, environment=PLAIN)) for target in ("sm_60", "sm_80", "sm_100")
    ]
    assert [isinstance(each, Result) and each.outcome.reason for each in found] == ["first", "second", "third"]


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("number", "words"),
    [("1.0", "its commit is gone"), ("9.9.9", "cutlass==9.9.9 is not installed: run `cumatrix toolkits install")],
)
def test_headers_that_are_not_there_settle_a_cell(
    resolver: Resolver, cell: Cell, toolkit: Callable[[str], Installed], number: str, words: str
) -> None:
    toolkit("12.4")
    library = replace(LIBRARIES["cutlass"], built={"1.0": Headers(problem="its commit is gone"), "2.0": Headers()})
    case = replace(cell.case, libraries={"cutlass": library})

    def with_headers(version: str) -> Result | PreparedCell:
        return resolver.resolve(replace(cell, case=case, variant=replace(cell.variant, libraries={"cutlass": version})))

    resolved = with_headers(number)
    assert isinstance(resolved, Result)
    assert resolved.outcome.status == "unavailable"
    assert words in resolved.outcome.reason
    assert isinstance(with_headers("2.0"), PreparedCell)
    offline = Resolver(RunContext(PLAIN, resolver.context.store, None, absent="nothing may be installed"))
    missing = offline.resolve(replace(cell, case=case, variant=replace(cell.variant, libraries={"cutlass": "9.9.9"})))
    offline.close()
    assert isinstance(missing, Result)
    assert missing.outcome.reason == "nothing may be installed"


@pytest.mark.compilers
def test_a_backend_for_nvidia_is_not_applicable_to_a_target_of_amd(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    with Run(RunContext(PLAIN, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        outcome = run.result(replace(cell, target=Target.parse("gfx942"))).outcome
    assert (outcome.status, outcome.reason) == ("unsupported", "nvrtc builds for NVIDIA GPUs alone, not for gfx942")


@pytest.mark.compilers
def test_a_later_run_knows_what_fork_servers_of_an_earlier_one_said(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """No process starts for a cell with an answer, nor for a target that its compiler does not support."""
    toolkit("12.4")
    # NVRTC 12.4 supports no such target, but no rule predicts that.
    unknown = replace(cell, target=Target.parse("sm_120"))
    inputs = []
    for time in ("first", "later"):
        with Run(
            RunContext(PLAIN, store, ResultCache(tmp_path / "cache"), RunRequest(limits=Limits(seconds=120)))
        ) as run:
            resolved = list(run.resolver.resolve_all([cell, unknown]))
            assert [isinstance(each, Result) for each in resolved] == [time == "later"] * 2
            results = {result.cell.id: result for result in run.results([cell, unknown])}
            assert results[cell.id].cached == (time == "later")
            assert results[cell.id].outcome.status == "built"
            refused = results[unknown.id].outcome
            assert (refused.status, "sm_120" in refused.reason) == ("unsupported", True)
            assert refused.observed["nvrtc"].startswith("12.4")
            inputs.append(run.inputs([results[cell.id].key]))
            if time == "later":  # a fork server starts in parallel to the look-up of earlier answers
                other = run.result(replace(cell, target=Target.parse("sm_90")))
                assert (other.outcome.status, other.cached) == ("built", False)
    assert inputs[0] == inputs[1]
    assert list(inputs[0].answers) == [results[cell.id].key]
    ((worker, (_, _, ready)),) = inputs[0].workers.items()
    assert inputs[0].answers[results[cell.id].key][2] == worker
    assert ready["status"] is None or not ready["status"]
    assert not ready.get("reads"), "they are kept once, as the set of files"


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("backend", "assembler", "status", "reason"),
    [
        ("nvcc", "13.0", "unsupported", "nvcc has no word for assembler"),
        ("nvrtc", "99.9", "unavailable", "CUDA 99.9 is not installed: run `cumatrix toolkits install 99.9`"),
    ],
)  # fmt: skip
def test_options_that_no_tool_takes_settle_a_cell(
    resolver: Resolver, cell: Cell, toolkit: Callable[[str], Installed], backend: str, assembler: str, status: str,
    reason: str,
) -> None:  # fmt: skip
    toolkit("13.0")
    case = make_case(cell.case.sources["cuda"], options={"assembler": assembler})
    resolved = resolver.resolve(make_cell(case, backend, "13.0", environment=PLAIN))
    assert isinstance(resolved, Result)
    assert (resolved.outcome.status, resolved.outcome.reason) == (status, reason)


@pytest.mark.compilers
def test_what_was_compiled_meanwhile_is_not_compiled_again(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    cache = ResultCache(tmp_path / "cache")
    with Run(RunContext(PLAIN, store, cache, RunRequest(limits=Limits(seconds=120)))) as run:
        prepared = run.resolver.resolve(cell)
        assert isinstance(prepared, PreparedCell)
        first = run.result(cell)
        (again,) = run.executor.run([prepared])
        assert (first.cached, again.cached, again.key) == (False, True, first.key)
        needs = run.resolver.needs.of(replace(cell, target=Target.parse("sm_90")))
        assert needs.memory == first.outcome.peak_bytes
        worker = run.resolver.worker(prepared.toolchain)
        assert worker and len(worker.keys) == 1
    assert prepared.toolchain.steps and not prepared.toolchain.steps.exists()
    with closing(sqlite3.connect(cache.folder / "results.db")) as connection:
        connection.execute("UPDATE entries SET used = 0.0")
        connection.commit()
        with Run(RunContext(PLAIN, store, cache, RunRequest(limits=Limits(seconds=120)))) as run:
            assert [run.resolver.worker(prepared.toolchain) for _ in range(2)] == [worker] * 2
            assert run.result(cell).cached
        (used,) = connection.execute("SELECT used FROM entries WHERE key = ?", (first.key,)).fetchone()
        assert used > 0, "what is used stays in the cache"


@pytest.mark.compilers
def test_what_a_device_does_is_neither_kept_nor_looked_up(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    cache = ResultCache(tmp_path / "cache")
    with Run(RunContext(PLAIN, store, cache, RunRequest(limits=Limits(seconds=120)))) as run:
        prepared = run.resolver.resolve(cell)
        assert isinstance(prepared, PreparedCell)
        assert run.result(cell).outcome.status == "built"
        worker = run.resolver.worker(prepared.toolchain)
        assert worker
        path = str(tmp_path / "kernel.cu")
        compiled = Compiled(
            Outcome(status=Status.BUILT), Reads({path: Files().current_state(path, False)[1]}, frozenset())
        )
        for device in ("NVIDIA H100", ""):
            own = replace(cell, toolchain=replace(cell.toolchain, device=device), target=Target.parse("sm_90"))
            asked = replace(prepared, cell=own, question=f"on {device}")
            result = run.resolver.finisher.finish(asked, worker, compiled)
            assert (cache.outcome(result.key) is None) == bool(device)
            assert (run.resolver.kept(replace(prepared, cell=own), worker) is None) == bool(device)


@pytest.mark.compilers
@pytest.mark.parametrize("device", ["NVIDIA H100", ""])
def test_an_answer_that_is_there_settles_no_cell_of_a_device(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path, device: str
) -> None:
    toolkit("12.4")
    context = RunContext(PLAIN, store, ResultCache(tmp_path / "cache"))
    own = replace(cell, toolchain=replace(cell.toolchain, device=device), target=Target.parse("sm_90"))
    first = Resolver(context)
    prepared = first.resolve(own)
    assert isinstance(prepared, PreparedCell) and context.cache
    path = str(tmp_path / "kernel.cu")
    reads = Reads({path: Files().current_state(path, False)[1]}, frozenset())
    worker = first.answers.key_of_worker(prepared.toolchain.key, reads).key
    context.cache.keep_fact(worker, Ready(targets=["sm_90"]).to_json())
    answer = first.answers.key_of(prepared.first_key(worker), reads).key
    context.cache.keep_outcome(answer, Outcome(status=Status.BUILT))
    first.close()
    later = Resolver(context)
    assert isinstance(later.resolve(own), PreparedCell if device else Result)
    later.close()


def test_hashes_of_a_run_are_kept_for_the_next(store: ToolkitStore, tmp_path: Path) -> None:
    path, context = os.path.realpath(sys.executable), RunContext(PLAIN, store, ResultCache(tmp_path / "cache"))
    assert context.cache
    context.cache.keep_fact("question", {"sets": ["s"]})
    context.cache.keep_fact("set:s", {"paths": [[path, False]], "hashes": []})
    for fresh in ({path}, set()):
        resolver = Resolver(context)
        assert list(resolver.answers.keys("question"))
        assert resolver.answers.files.fresh == fresh
        resolver.close()


@pytest.mark.compilers
@pytest.mark.parametrize("signal", ["KILL", pytest.param("STOP", marks=pytest.mark.slow)])
def test_a_fork_server_that_is_ended_or_stopped_while_it_loads_is_started_once_more(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path, signal: str
) -> None:
    toolkit("12.4")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\necho >> {tmp_path}/starts\n[ $(wc -l < {tmp_path}/starts) = 1 ] && kill -{signal} $$\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    with Run(
        RunContext(replace(PLAIN, python=str(python)), store, None, RunRequest(limits=Limits(seconds=120)))
    ) as run:
        for target in ("sm_80", "sm_90"):
            assert run.result(replace(cell, target=Target.parse(target))).outcome.status == "built"
    assert (tmp_path / "starts").read_text() == "\n\n", "one for both cells, after the one that was lost"


@pytest.mark.compilers
@pytest.mark.parametrize("definitions", [False, True])
def test_an_outcome_that_depends_on_the_time_is_not_kept(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path, definitions: bool
) -> None:
    toolkit("12.4")
    cell.case.sources["cuda"].write_text(TEXT + ("" if definitions else "__device__ const char *made = __TIME__;\n"))
    variant = replace(cell.variant, definitions={"MADE": "__TIME__"} if definitions else {})
    with Run(RunContext(PLAIN, store, ResultCache(tmp_path / "cache"), RunRequest(limits=Limits(seconds=120)))) as run:
        (result,) = run.results([replace(cell, variant=variant)])
        assert (result.outcome.status, result.key) == ("built", "")
        ((why, count),) = run.resolver.finisher.unkept.items()
        assert ("__TIME__" in why, "macro" in why, count) == (True, definitions, 1)


@pytest.mark.compilers
def test_the_result_names_tools_and_header_libraries(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    told = {"headers": "3.5", "commit": "a" * 40}
    library = replace(LIBRARIES["cutlass"], built={"2.0": Headers(origin=told)})
    case = replace(cell.case, libraries={"cutlass": library})
    with Run(RunContext(PLAIN, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        result = run.result(replace(cell, case=case, variant=replace(cell.variant, libraries={"cutlass": "2.0"})))
        assert "libraries" not in run.result(cell).outcome.observed
    assert result.outcome.observed["nvrtc"].startswith("12.4")
    assert result.outcome.observed["libraries"] == {"cutlass": told}


@pytest.mark.compilers
def test_outcomes_are_not_kept_where_reads_cannot_be_followed(
    store: ToolkitStore,
    cell: Cell,
    toolkit: Callable[[str], Installed],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_compiler(*_: object, **__: object) -> Path:
        """A fake machine without gcc."""
        raise OSError("gcc is missing")

    toolkit("12.4")
    monkeypatch.setattr(native, "build", without_compiler)
    with Run(RunContext(PLAIN, store, ResultCache(tmp_path / "cache"), RunRequest(limits=Limits(seconds=120)))) as run:
        result = run.result(cell)
        assert (result.outcome.status, result.key) == ("built", "")
        assert run.resolver.finisher.unkept == {"gcc is missing": 1}
        assert run.context.cache and run.context.cache.fact("") is None
        assert isinstance(run.resolver.resolve(cell), PreparedCell)


@pytest.mark.compilers
def test_outcomes_are_not_kept_where_a_fork_server_changes_what_it_has_read(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ncat {tmp_path}/read\necho >> {tmp_path}/read\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    os.utime(python, (0, 0))  # a file that was just written cannot be told from one that changes while it is read
    (tmp_path / "read").touch()
    context = RunContext(replace(PLAIN, python=str(python)), store, ResultCache(tmp_path / "cache"))
    with Run(context) as run:
        result = run.result(cell)
        assert (result.outcome.status, result.key) == ("built", "")
        assert run.resolver.finisher.unkept == {f"{tmp_path}/read changed while it was read": 1}


@pytest.mark.compilers
def test_a_library_that_cannot_be_loaded_is_loaded_once(
    store: ToolkitStore, cell: Cell, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    broken = replace(PLAIN, python="/bin/false")
    cache = ResultCache(tmp_path / "cache")
    with Run(RunContext(broken, store, cache, RunRequest(limits=Limits(seconds=120)))) as run:
        assert isinstance(run.resolver.resolve(cell), PreparedCell)
        result = run.result(cell)
        assert (result.outcome.status, result.cached) == ("unavailable", False)
        known = run.resolver.resolve(replace(cell, target=Target.parse("sm_90")))
        assert isinstance(known, Result)
        assert (known.outcome.status, known.outcome.reason) == ("unavailable", result.outcome.reason)
    with Run(RunContext(broken, store, cache, RunRequest(limits=Limits(seconds=120)))) as run:
        assert isinstance(run.resolver.resolve(cell), PreparedCell), "the next run tries again"
