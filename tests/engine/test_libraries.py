"""The table of libraries: consequences of an entry."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from cells import make_case, make_cell

from harness.backends import BACKENDS, BackendInfo
from harness.engine.environment import Environment, look
from harness.engine.environments import default_toolkit
from harness.engine.plan import choose_backends, library_of
from harness.engine.toolchain import PreparedToolchain
from harness.libraries import LIBRARIES, Library, names_in_conditions
from harness.model import Status, Toolchain, ToolkitRef
from harness.protocol.messages import Distribution
from harness.toolkits import ToolkitStore

TOOLKIT = ToolkitRef(release="12.4", headers="12.4")


def environment(**versions: str) -> Environment:
    entries = {name.replace("_", "-"): Distribution(text) for name, text in versions.items()}
    return Environment(name="e", python="/usr/bin/python3", version="3.11.7", distributions=entries)


@pytest.fixture
def _new_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A backend for a library that only the two tables have; its distribution is a dependency of pytest."""
    library = Library(distributions={"plugs-cuda12x": "12.9", "pluggy": ""})
    monkeypatch.setattr(LIBRARIES, "_all", {**LIBRARIES, "plugs": library})
    info = BackendInfo(name="plugs-rtc", title="Plugs", module="plugs", languages=("cuda",), library="plugs")
    monkeypatch.setattr(BACKENDS, "_all", {**BACKENDS, "plugs-rtc": info})
    names_in_conditions.cache_clear()
    yield
    names_in_conditions.cache_clear()


@pytest.mark.usefixtures("_new_library")
def test_a_library_that_is_in_the_tables_is_found(tmp_path: Path) -> None:
    here = look(require=["pluggy<0.1"])
    assert here.packages["plugs"] == here.packages["pluggy"] == version("pluggy")
    info = BACKENDS["plugs-rtc"]
    assert info in choose_backends(None, here)
    assert library_of(info, here, TOOLKIT) == version("pluggy")
    (tmp_path / "kernel.cu").touch()
    cell = make_cell(make_case(tmp_path / "kernel.cu"), "plugs-rtc", environment=here)
    assert str(cell.facts()["plugs"]) == version("pluggy")
    prepared = PreparedToolchain.of(cell.toolchain, here, ToolkitStore(), tmp_path)
    assert prepared.problem is not None
    assert prepared.problem.reason == f"asked for pluggy<0.1, but pluggy {version('pluggy')} is installed"


@pytest.mark.usefixtures("_new_library")
def test_a_library_that_is_in_the_tables_and_not_installed(tmp_path: Path) -> None:
    here = environment(numba="0.59.1")
    assert BACKENDS["plugs-rtc"] not in choose_backends(None, here)
    toolchain = Toolchain(backend="plugs-rtc", library="", toolkit=TOOLKIT)
    problem = PreparedToolchain.of(toolchain, here, ToolkitStore(), tmp_path).problem
    assert problem is not None
    assert problem.status is Status.UNAVAILABLE
    assert problem.reason.startswith("plugs-rtc needs plugs-cuda12x, which is not installed in e")


@pytest.mark.parametrize(
    ("versions", "release"),
    [
        ({}, "12.9"),
        ({"numba": "0.59.1"}, "12.9"),
        ({"cupy_cuda12x": "13.6.0"}, "12.9"),
        ({"cupy_cuda13x": "14.2.0"}, "13.0"),
        ({"cupy_cuda11x": "12.3.0"}, "11.8"),
        ({"cupy_cuda12x": "13.6.0", "nvidia_cuda_runtime_cu12": "12.4.127"}, "12.4"),
        ({"cupy_cuda12x": "13.6.0", "nvidia_cuda_runtime": "13.0.96"}, "12.9"),
        ({"cupy_cuda13x": "14.2.0", "nvidia_cuda_runtime": "13.2.1"}, "13.2"),
        ({"cupy_cuda13x": "14.2.0", "nvidia_cuda_runtime": "14.0.1"}, "13.0"),
        ({"torch": "2.6.0"}, "12.9"),
        ({"torch": "2.6.0", "nvidia_cuda_runtime_cu12": "12.4.127"}, "12.4"),
        ({"torch": "2.11.0", "nvidia_cuda_runtime": "13.0.96"}, "13.0"),
        ({"torch": "9.0", "nvidia_cuda_runtime": "17.1.2"}, "12.9"),
        ({"cupy_cuda12x": "13.6.0", "torch": "2.11.0", "nvidia_cuda_runtime": "13.0.96"}, "12.9"),
        ({"numba_cuda": "0.30.4", "nvidia_cuda_runtime": "13.0.96"}, "12.9"),
    ],
    ids=str,
)
def test_the_release_that_an_environment_is_tried_with(versions: dict[str, str], release: str) -> None:
    assert default_toolkit(environment(**versions)) == release


@pytest.mark.parametrize(
    ("distribution", "release", "words"),
    [
        ("cupy-cuda12x", "12.4", None),
        ("cupy-cuda12x", "13.0", "loads the NVRTC of CUDA 12 and no other; CUDA 13.0 needs cupy-cuda13x"),
        ("cupy-cuda11x", "12.0", "loads the NVRTC of CUDA 11 and no other; CUDA 12.0 needs cupy-cuda12x"),
        ("cupy-cuda13x", "10.2", "and no other; none of its distributions loads CUDA 10.2"),
        ("cupy", "13.0", None),
    ],
)
def test_a_build_for_one_cuda_cannot_use_another(distribution: str, release: str, words: str | None) -> None:
    found = BACKENDS["cupy-nvrtc"].incompatibility(distribution, release)
    assert found is None if words is None else found is not None and found.endswith(words)


def test_what_stands_beside_a_library_is_watched_too(tmp_path: Path) -> None:
    here = environment(numba="0.61.2", numba_cuda="0.15.0")
    toolchain = Toolchain(backend="numba-cuda", library="0.15.0", toolkit=TOOLKIT)
    broken = Environment(
        **{**vars(here), "broken": {"numba": "asked for numba==0.61.0, but numba 0.61.2 is installed"}}
    )
    problem = PreparedToolchain.of(toolchain, broken, ToolkitStore(), tmp_path).problem
    assert problem is not None
    assert problem.reason == "asked for numba==0.61.0, but numba 0.61.2 is installed"
