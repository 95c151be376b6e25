"""A runner and its fork servers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.engine.cache import ResultCache
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.executor import Run, Runner
from harness.engine.fork_server import ForkServerDied
from harness.engine.machine import DevicePool, Devices, Memory, available
from harness.engine.prepared import PreparedCell, Result
from harness.engine.resolve import ForkServers, Resolver
from harness.engine.toolchain import PreparedToolchain
from harness.model import Cell, Target, Toolchain, ToolkitRef
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


@pytest.mark.parametrize("known", [False, True])
def test_a_fork_server_whose_words_could_not_be_kept_serves_no_cell(
    store: ToolkitStore, cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """With a fake full disk."""
    cache = ResultCache(tmp_path / "cache")
    context = RunContext(PLAIN, store, cache, RunRequest(limits=Limits(seconds=120)))
    if known:  # from an earlier run
        with Run(context) as run:
            assert run.result(replace(cell, target=Target.parse("sm_90"))).outcome.status == "built"

    def full(*_: object) -> None:
        monkeypatch.undo()
        raise OSError(28, "No space left on device")

    resolver = Resolver(context)
    done: list[Result | BaseException] = []
    runner = Runner(resolver, Memory(available()), DevicePool(Devices()), done.append)
    prepared = resolver.resolve(cell)
    assert isinstance(prepared, PreparedCell)
    monkeypatch.setattr(cache, "keep_fact", full)
    try:
        runner.run(prepared)
        runner.finish()
        assert [str(error) for error in done] == ["[Errno 28] No space left on device"]
        assert not runner.fork_servers.running
        runner.run(prepared)
        runner.finish()
        assert isinstance(done[1], Result) and done[1].outcome.status == "built"
    finally:
        runner.close()
        resolver.close()


def test_fork_servers_are_kept_by_toolchain_and_replaced_where_they_are_gone(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    def prepared(release: str, name: str = "") -> PreparedToolchain:
        toolkit(release)
        named = Toolchain(
            backend="nvrtc", library="", toolkit=ToolkitRef(release=release, headers=release), environment=name
        )
        return PreparedToolchain.of(named, PLAIN, store, tmp_path / "tools")

    old, new = prepared("12.4"), prepared("13.0")
    ended: list[int] = []
    servers = ForkServers(1, lambda: ended.append(1))
    try:
        first = servers.of(old)
        assert servers.of(old) is first
        second = servers.of(new)
        assert first.process.poll() is not None
        second.process.kill()
        second.process.wait()
        third = servers.of(new)
        assert third is not second
        assert list(servers.running.values()) == [third]
        servers.end(new)
        assert third.process.poll() is not None
        assert len(ended) == 3  # the hook was called once for each fork server that ended
    finally:
        servers.close()
    with pytest.raises(ForkServerDied, match="the run is over"):
        servers.of(old)
    assert not servers.running
    several = ForkServers(2)
    try:
        kept, unused = several.of(old), several.of(new)
        assert several.of(old) is kept
        several.of(prepared("12.4", "another"))
        assert [each.process.poll() is None for each in (kept, unused)] == [True, False]
    finally:
        several.close()
