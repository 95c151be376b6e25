"""Cells run directly by a worker process: a backend's reply before the engine judges it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cells import make_case, make_cell, make_order
from venvs import python_with

from harness.engine.collect import Remains, collect_outcome
from harness.engine.fork_server import ForkServer
from harness.engine.toolchain import clean_environment
from harness.protocol.messages import Setup
from harness.toolkits import Installed
from harness.toolkits.store import data_folder


class Workers:
    """Cache of worker processes by their loaded libraries; it keeps the newest few."""

    def __init__(self) -> None:
        self.running: dict[tuple[str, ...], ForkServer] = {}

    def get(self, requirement: str, backend: str, toolkit: Installed, tools: Path | None = None) -> ForkServer:
        tools = tools or data_folder() / "tools"
        key = (requirement, backend, toolkit.release, str(tools))
        if key not in self.running:
            while len(self.running) >= 3:
                self.running.pop(next(iter(self.running))).close()
            include = [str(folder) for folder in toolkit.include]
            setup = Setup(toolkit.home, toolkit.release, toolkit.release, include, tools)
            variables = clean_environment(str(toolkit.home))
            python = python_with(requirement) if requirement else sys.executable
            self.running[key] = ForkServer(python, backend, setup, variables)
        return self.running[key]

    def close(self) -> None:
        for fork_server in self.running.values():
            fork_server.close()


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    (data_folder() / "tools").mkdir(parents=True, exist_ok=True)
    made = Workers()
    yield made
    made.close()


@pytest.fixture
def run_cell(workers: Workers, toolkit: Callable[[str], Installed], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a program. A package that cannot be installed is an error, not a skip."""

    def run(
        requirement: str, backend: str, release: str, source: str, target: str,
        entries: Mapping[str, str], options: Mapping[str, Any], tools: Path | None = None,
        *, name: str = "kernel", beside: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        installed = toolkit(release)
        fork_server = workers.get(requirement, backend, installed, tools)
        if fork_server.ready.status:
            return fork_server.ready.to_json()
        folder = tmp_path / "program"
        path = folder / f"{name}.{'py' if backend.startswith('numba') or 'import cupy' in source else 'cu'}"
        for file, text in {path.name: source, **(beside or {})}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        number = len(list(tmp_path.glob("cell-*")))
        scratch = tmp_path / f"cell-{number:02}"
        scratch.mkdir()
        include = [str(folder) for folder in installed.include]
        order = make_order(path, target, scratch, entries, options={"arch": "implicit", **options}, include=include)
        ended = fork_server.run(order)
        cell = make_cell(make_case(path), backend, release, target)
        outcome = collect_outcome(
            Remains.of(cell, order, ended, installed.home, tools or data_folder() / "tools")
        ).to_json()
        observed = {**fork_server.ready.observed, **outcome["observed"]}
        return {**outcome, "observed": observed, "stages": list(outcome["stages"]), "notes": list(outcome["notes"])}

    return run
