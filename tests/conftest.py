"""Real compilers for all tests: toolkits and libraries come from PyPI on first use, and are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import measured
import pytest
from cells import Place
from command import Called, Command
from venvs import python_with

from harness.model import Outcome
from harness.toolkits import RELEASES, Installed, ToolkitStore

Install = Callable[[str], Installed]
RunCell = Callable[..., Outcome]
_PLACES = 4


def pytest_configure(config: pytest.Config) -> None:
    """Measure workers, too, under coverage (`measured`)."""
    if not hasattr(config, "workerinput"):
        measured.begin(sys.executable)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes that the tests have started, after the processes of pytest-xdist have ended."""
    if not hasattr(config, "workerinput"):
        measured.end(sys.executable)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep outcomes of earlier runs and settings of the user out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("CUMATRIX_") and name != "CUMATRIX_HOME"]:
            patch.delenv(name)
        patch.delenv("TOX_ENV_NAME", raising=False)
        # pytest keeps the last failures there: a pytest that a test starts would share the folder with parallel tests.
        patch.delenv("TOX_ENV_DIR", raising=False)
        patch.setenv("CUMATRIX_CACHE", str(tmp_path_factory.mktemp("cache")))
        # uv's links change the times of files that other tests' cells read, and outcomes of changing files are not cached.
        patch.setenv("UV_LINK_MODE", "copy")
        yield


@pytest.fixture(scope="session")
def store() -> ToolkitStore:
    """Return the user's store; a missing toolkit is installed there."""
    return ToolkitStore()


@pytest.fixture(scope="session")
def toolkit(store: ToolkitStore) -> Install:
    """Return an installed release."""
    return lambda release: store.install(RELEASES[release])


@pytest.fixture(scope="session")
def venv() -> Callable[..., str]:
    """Return the interpreter of an environment with the given requirements."""
    return python_with


@pytest.fixture(scope="session")
def places(store: ToolkitStore) -> Iterator[Callable[[str], Place]]:
    """Return the environment of a requirement, with its workers. The empty requirement is the environment of the tests.

    Tests come in random order: the last few stay, or each loads its library again. Not all of them, which would fill the memory.
    """
    made: dict[str, Place] = {}
    recent: list[str] = []

    def place(requirement: str = "") -> Place:
        if requirement not in made:
            made[requirement] = Place(python_with(requirement) if requirement else None, store)
        recent[:] = [*(each for each in recent if each != requirement), requirement][-_PLACES:]
        for name in made.keys() - set(recent):
            made[name].close()
        return made[requirement]

    yield place
    for each in made.values():
        each.close()


@pytest.fixture
def run_cell(places: Callable[[str], Place], toolkit: Install) -> RunCell:
    """Run one cell through the engine, without a cache."""

    def run(
        requirement: str, backend: str, release: str, source: str | Path, target: str, *,
        entries: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None,
    ) -> Outcome:  # fmt: skip
        toolkit(release)
        return places(requirement).run(backend, release, source, target, entries=entries, options=options)

    return run


@pytest.fixture
def cumatrix(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    """Return the command in an empty folder: a process, or a function in modules marked `called`."""
    command = (Called if request.node.get_closest_marker("called") else Command)(tmp_path)
    assert command.script.is_file(), f"install cumatrix beside {sys.executable}: pip install -e .[test]"
    return command
