"""Installation of the parts that the chosen cells need, and no others; without the network, one error lists them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engine.context import RunContext, RunRequest
from harness.engine.environments import line_up
from harness.engine.install import Step, install, missing
from harness.engine.prepared import Result
from harness.engine.resolve import Resolver
from harness.environments.index import File, Index
from harness.errors import UsageError
from harness.model import Case, Cell, HeaderLibrary, Target, Toolchain, ToolkitRef, UnsupportedRule, Variant
from harness.model.condition import Condition
from harness.toolkits import ToolkitStore

from .test_environments import made
from .test_plan import environment

NOT_INSTALLED = "not installed, and --offline downloads nothing"
CUTLASS = HeaderLibrary(name="cutlass", packages={"": "nvidia-cutlass"}, include=("include",))
OTHERS = (made("numba", "0.59.0"), made("numba", "0.59.1"))


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))


def context(*, offline: bool = False) -> RunContext:
    return RunContext(environment(), ToolkitStore(), None, RunRequest(offline=offline), others=OTHERS)


def cell(
    backend: str = "nvrtc", release: str = "12.4", *, name: str = "e", headers: str = "", **libraries: str
) -> Cell:
    case = Case(
        name="a/b", path=Path("c"), title="", sources={"cuda": Path("k"), "python": Path("k")},
        variants=(Variant(labels={}, definitions={}, libraries=libraries),), libraries={"cutlass": CUTLASS},
    )  # fmt: skip
    toolchain = Toolchain(
        backend=backend, library="", toolkit=ToolkitRef(release=release, headers=headers or release), environment=name
    )
    return Cell(case=case, variant=case.variants[0], toolchain=toolchain, target=Target.parse("sm_80"))


def test_only_what_cells_need_is_missing() -> None:
    assert not missing([], context())
    plain = missing([cell(), cell(release="13.0", headers="12.9")], context())
    assert (plain.releases, plain.libraries, plain.environments) == (["12.4", "13.0", "12.9"], [], [])
    more = missing([cell(cutlass="3.5.1"), cell("numba", name="numba-0.59.1")], context())
    assert (more.releases, more.libraries, more.environments) == (["12.4"], [(CUTLASS, "3.5.1")], [OTHERS[1]])
    assert str(more) == "numba 0.59.1, CUDA 12.4, cutlass 3.5.1"
    assert more.command == "cumatrix toolkits install 12.4 cutlass==3.5.1 && cumatrix libraries install numba=0.59.1"


def test_a_toolkit_has_the_parts_that_a_compiler_includes_headers_of() -> None:
    wanted = replace(context(), others=(made("clang", "18.1.6", distribution="ziglang"),))
    found = missing([cell("clang", "12.4", name="clang-18.1.6"), cell(release="12.9")], wanted)
    assert (found.releases, found.parts) == (["12.4", "12.9"], {"12.4": ["curand"]})
    assert str(found) == "clang 18.1.6, CUDA 12.9, CUDA 12.4 with curand"
    assert found.command == (
        "cumatrix toolkits install 12.4 --with curand && cumatrix toolkits install 12.9 && cumatrix libraries install clang=18.1.6"
    )


def test_nothing_is_installed_for_an_nvcc_that_no_wheel_has() -> None:
    """PyTorch takes gigabytes, and releases that were built for CUDA 12 require nvcc of CUDA 12."""
    others = (made("torch", "2.10.0"),)
    wanted = replace(context(), others=others)
    assert not missing([cell("torch-nvcc", "12.8", name=others[0].name), cell("nvcc", "12.9")], wanted)
    assert missing([cell("torch-nvcc", "13.0", name=others[0].name)], wanted).environments == [others[0]]


def test_nothing_is_needed_for_what_is_not_applicable() -> None:
    rule = UnsupportedRule(when=Condition.parse('toolkit == "12.4"', {}), reason="no")
    given = cell()
    assert not missing([replace(given, case=replace(given.case, unsupported=(rule,)))], context())
    assert not missing([cell("numba")], context())  # not installed, and not requested with --with
    broken = replace(context(), others=(replace(OTHERS[0], broken={"numba": "no wheel"}),))
    assert not missing([cell("numba", name="numba-0.59.0")], broken)


def none_shown(steps: Sequence[Step]) -> Callable[[Step], AbstractContextManager[None]]:
    return lambda step: nullcontext()


def test_offline_says_once_what_is_missing() -> None:
    said: list[str] = []
    cells = [cell("numba", release, name=other.name) for release in ("12.4", "12.9") for other in OTHERS]
    after = install(cells, context(offline=True), none_shown, said.append)
    (sentence,) = said
    assert sentence.startswith(
        "not installed, and --offline downloads nothing: numba 0.59.0, numba 0.59.1, CUDA 12.4, CUDA 12.9. "
    )
    assert "`cumatrix toolkits install 12.4 12.9 && cumatrix libraries install numba=0.59.0 numba=0.59.1`" in sentence
    assert all("run `cumatrix toolkits install" in each.broken["numba"] for each in after.others)


def test_what_was_never_resolved_is_told_with_the_same_command(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        File(f"{name}-{version}-py3-none-any.whl", 7, "2024-01-31T10:00:00Z", "")
        for name, version in (("numba", "0.59.0"), ("numba", "0.59.1"), ("torch", "2.6.0"))
    ]
    monkeypatch.setattr(Index, "files", lambda self, name: [file for file in files if file.name.startswith(f"{name}-")])
    others = line_up(["numba=0.59.0,0.59.1", "torch=2.6.0"], None, "3.11", offline=True)
    assert all(each.broken for each in others)
    cells = [cell("torch-nvcc" if each.library == "torch" else each.library, "12.4", name=each.name) for each in others]
    said: list[str] = []
    after = install(cells, replace(context(offline=True), others=others), none_shown, said.append)
    # PyTorch's wheels would determine its CUDA release.
    command = (
        "cumatrix toolkits install 12.4 && "
        "cumatrix libraries install numba=0.59.0+python3.11 numba=0.59.1+python3.11 torch=2.6.0+python3.11"
    )
    assert said == [f"not installed, and --offline downloads nothing: {missing(cells, replace(context(), others=others), offline=True)}. To install it, run `{command}`"]  # fmt: skip
    assert {next(iter(each.broken.values())) for each in after.others} == {f"{NOT_INSTALLED}: run `{command}`"}
    results = [Resolver(after).resolve(each) for each in [*cells, cell("nvrtc", "12.4")]]
    assert {result.outcome.reason for result in results if isinstance(result, Result)} == {f"{NOT_INSTALLED}: run `{command}`"}  # fmt: skip
    assert len(results) == 4


def test_a_header_library_that_nothing_knows_is_refused_before_anything_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = [File("nvidia_cutlass-98.0.0.0-py3-none-any.whl"), File("nvidia-cutlass-99.tar.gz")]
    monkeypatch.setattr(Index, "files", lambda self, name: files if name == "nvidia-cutlass" else [])
    with pytest.raises(UsageError, match=r"there is no cutlass 99; known are 3\.3\.0, "):
        install([cell(cutlass="99")], context(), none_shown, lambda _: None)
    index = Index(Path("nowhere"))
    assert index.has("nvidia-cutlass", "98.0")  # newer than any known release
    assert not index.has("nvidia-cutlass", "99")


def test_what_cannot_be_had_is_told_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "file:///nowhere")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    said: list[str] = []
    after = install([cell(), cell(release="12.9")], context(), none_shown, said.append)
    assert len(said) == 2
    assert said[0].startswith("CUDA 12.4 cannot be installed from file:///nowhere: ")
    assert after.store.find("12.4") is None


@pytest.mark.parametrize("lost", ["network", "uv"])
def test_where_nothing_can_be_installed_one_line_says_so(monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    if lost == "network":
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    else:
        monkeypatch.setattr("uv.find_uv_bin", fails(FileNotFoundError("Could not find the uv binary")))
        monkeypatch.setenv("PATH", "/nowhere")
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS", "UV_INDEX"):
        monkeypatch.delenv(name, raising=False)
    said: list[str] = []
    install([cell(), cell(release="12.9")], context(), none_shown, said.append)
    (line,) = said
    assert line.startswith("not installed: CUDA 12.4, CUDA 12.9: ")
    assert (
        "127.0.0.1 cannot be reached: Connection refused"
        if lost == "network"
        else "cumatrix requires uv, which is not installed"
    ) in line


def fails(error: Exception) -> Callable[[], str]:
    def raising() -> str:
        raise error

    return raising


def test_environments_that_no_cell_runs_in_are_left_out() -> None:
    after = install([cell("numba", name="numba-0.59.0")], context(offline=True), none_shown, lambda text: None)
    assert [each.name for each in after.others] == ["numba-0.59.0"]
