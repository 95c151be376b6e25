"""A prepared toolchain: its properties before any process starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cells import make_case

from harness.engine.environment import Environment
from harness.engine.toolchain import PreparedToolchain, steps_of
from harness.model import Case, Status, Toolchain, ToolkitRef
from harness.protocol.messages import Distribution
from harness.toolkits import Installed, ToolkitStore


def environment(*, broken: dict[str, str] | None = None, **versions: str) -> Environment:
    found = {name.replace("_", "-"): Distribution(v) for name, v in versions.items()}
    return Environment(name="mine", python="/py", version="3.11.7", distributions=found, broken=broken or {})


def prepared(
    store: ToolkitStore, tools: Path, here: Environment, *, backend: str = "nvrtc", release: str = "12.4", headers: str = ""
) -> PreparedToolchain:  # fmt: skip
    ref = ToolkitRef(release=release, headers=headers or release)
    return PreparedToolchain.of(Toolchain(backend=backend, library="", toolkit=ref), here, store, tools)


@pytest.mark.parametrize(
    ("backend", "here", "status", "words"),
    [
        ("nvrtc", environment(), Status.UNAVAILABLE, "cumatrix toolkits install 12.4"),
        ("numba", environment(), Status.UNAVAILABLE, "/py -m pip install numba"),
        ("numba", environment(numba="0.61.0", numba_cuda="0.4.0"), Status.UNAVAILABLE, "numba-cuda 0.4.0"),
        ("cupy-nvrtc", environment(cupy_cuda13x="13.6.0"), Status.UNSUPPORTED, "cupy-cuda12x"),
        (
            "numba",
            environment(numba="0.59.1", broken={"numba": "asked for numba==0.59.0"}),
            Status.UNAVAILABLE,
            "asked for numba==0.59.0",
        ),
        (
            "numba",
            environment(numba="0.59.1", broken={"numpy": "asked for numpy<2"}),
            Status.UNAVAILABLE,
            "asked for numpy<2",
        ),
    ],
)
def test_what_is_in_the_way_is_known_beforehand(
    tmp_path: Path, backend: str, here: Environment, status: Status, words: str
) -> None:
    problem = prepared(ToolkitStore(tmp_path / "none"), tmp_path / "tools", here, backend=backend).problem
    assert problem is not None
    assert problem.status is status
    assert words in problem.reason
    assert not (tmp_path / "tools").exists()


def test_finished_steps_are_shared_within_a_case_and_by_compilers_only(tmp_path: Path) -> None:
    def case(name: str) -> Case:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "kernel.cu").touch()
        return make_case(tmp_path / name / "kernel.cu", name)

    def toolchain(backend: str) -> PreparedToolchain:
        return replace(
            prepared(ToolkitStore(tmp_path / "none"), tmp_path, environment(), backend=backend), steps=tmp_path
        )

    nvcc = toolchain("nvcc")
    one, other = steps_of(nvcc, case("one")), steps_of(nvcc, case("other"))
    assert one != other and steps_of(nvcc, case("one")) == one
    assert Path(one).parent == Path(other).parent == tmp_path and Path(one).is_dir()
    assert not steps_of(toolchain("nvrtc"), case("one"))


@pytest.mark.compilers
class TestInstalled:
    """With installed toolkits."""

    @pytest.fixture(autouse=True)
    def _toolkits(self, toolkit: Callable[[str], Installed]) -> None:
        toolkit("12.4")
        toolkit("13.0")

    def test_nothing_is_in_the_way(self, store: ToolkitStore, tmp_path: Path) -> None:
        assert prepared(store, tmp_path, environment()).problem is None

    def test_headers_of_a_release_that_is_not_there(self, store: ToolkitStore, tmp_path: Path) -> None:
        (tmp_path / "toolkits").mkdir()
        (tmp_path / "toolkits" / "12.4").symlink_to(store.root / "12.4")
        problem = prepared(ToolkitStore(tmp_path / "toolkits"), tmp_path, environment(), headers="13.0").problem
        assert problem is not None
        assert "CUDA 13.0 is not installed" in problem.reason

    def test_a_worker_is_told_where_compiler_and_headers_are(self, store: ToolkitStore, tmp_path: Path) -> None:
        setup = prepared(store, tmp_path, environment(), headers="13.0").setup
        assert (setup.release, setup.headers) == ("12.4", "13.0")
        assert setup.home == (store.root / "12.4").resolve()
        assert {str(Path(folder).resolve().relative_to(store.root.resolve())).split("/")[0] for folder in setup.include} == {"13.0"}  # fmt: skip

    def test_only_backends_that_run_a_host_compiler_get_the_users_path(
        self, store: ToolkitStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mine = tmp_path / "bin"
        mine.mkdir()
        monkeypatch.setenv("PATH", f"{mine}{os.pathsep}{os.environ['PATH']}")
        folders = {
            backend: prepared(store, tmp_path, environment(), backend=backend, release="13.0").path.split(os.pathsep)
            for backend in ("nvcc", "nvrtc")
        }
        assert str(mine) in folders["nvcc"]
        assert str(mine) not in folders["nvrtc"]

    def test_the_key_follows_from_what_is_asked_for(self, store: ToolkitStore, tmp_path: Path) -> None:
        here = environment(numba="0.59.1")
        keys = [
            prepared(store, tmp_path, here).key,
            prepared(store, tmp_path, here, release="13.0").key,
            prepared(store, tmp_path, here, headers="13.0").key,
            prepared(store, tmp_path, here, backend="numba").key,
            prepared(store, tmp_path, environment(numba="0.60.0"), backend="numba").key,
        ]
        assert len(set(keys)) == len(keys)
        # NVRTC loads no library of the environment: installed libraries do not matter.
        assert prepared(store, tmp_path / "elsewhere", environment(numba="0.60.0")).key == keys[0]

    def test_the_key_does_not_follow_from_how_the_interpreter_is_called(
        self, store: ToolkitStore, tmp_path: Path
    ) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "python").symlink_to(sys.executable)
        (folder / "python3").symlink_to("python")
        called = [replace(environment(), python=str(folder / name)) for name in ("python", "python3", "python3.12")]
        keys = [prepared(store, tmp_path, here).key for here in called]
        assert keys[0] == keys[1]
        assert keys[0] != keys[2]

    def test_a_worker_of_it_starts_and_names_what_it_loaded(self, store: ToolkitStore, tmp_path: Path) -> None:
        here = Environment(name="mine", python=sys.executable, version="3.11.7", distributions={})
        fork_server = prepared(store, tmp_path / "tools", here).fork_server()
        try:
            assert not fork_server.ready.status, fork_server.ready.reason
            assert fork_server.ready.observed["nvrtc"] == "12.4"
        finally:
            fork_server.close()
