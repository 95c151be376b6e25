"""Header libraries from PyPI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.errors import PartUnavailable, UsageError
from harness.toolkits import LIBRARIES, Installed, LibraryStore
from harness.toolkits.header_libraries import observed_version, parse_library

CASE = """title = "x"

[source]
cuda = "kernel.cu"

[libraries]
cutlass = ["3.4.1", "4.2.0"]
"""
KERNEL = '#include <cutlass/version.h>\nextern "C" __global__ void major(int *a) { *a = CUTLASS_MAJOR; }\n'


def test_a_library_by_name_and_version() -> None:
    library, version = parse_library("cutlass==3.5.1")
    assert (library.name, version) == ("cutlass", "3.5.1")


@pytest.mark.parametrize(
    "text",
    [
        "cutlass",
        "cutlass>=3",
        "cutlass==3.*",
        "cutlass==",
        "==1",
        "cutlas==3.5.1",
        "cutlass[x]==3.5.1",
        "cutlass @ https://x.example/cutlass-3.5.1-py3-none-any.whl",
        "cutlass==3.5.1 --index-url=x",
        "cutlass==3.5.1; python_version>'3'",
    ],
)
def test_what_is_no_library(text: str) -> None:
    with pytest.raises(UsageError):
        parse_library(text)


@pytest.mark.slow
@pytest.mark.compilers
def test_a_version_is_laid_out_and_tells_itself(tmp_path: Path) -> None:
    store = LibraryStore(tmp_path)
    found = store.install(LIBRARIES["cutlass"], "3.4.1")
    assert (found.home / "include" / "cute" / "tensor.hpp").is_file()
    assert observed_version(LIBRARIES["cutlass"], found) == {"wheel": "3.4.1.0", "headers": "3.4.1"}
    assert [item.release for item in store.installed(LIBRARIES["cutlass"])] == ["3.4.1"]
    before = found.fingerprint
    (found.home / "include" / "cutlass" / "version.h").write_text("#define CUTLASS_MAJOR 9\n")
    again = store.find(LIBRARIES["cutlass"], "3.4.1")
    assert isinstance(again, Installed) and again.fingerprint != before  # a manual change is another library
    (again.home / "include" / "cutlass" / "version.h").unlink()
    with pytest.raises(PartUnavailable, match=r"cutlass 3\.4\.1 is damaged .* install --force cutlass==3\.4\.1"):
        _ = store.find(LIBRARIES["cutlass"], "3.4.1").fingerprint  # type: ignore[union-attr]
    assert store.remove(LIBRARIES["cutlass"], "3.4.1") and store.find(LIBRARIES["cutlass"], "3.4.1") is None


@pytest.mark.compilers
def test_a_version_that_is_not_on_pypi(tmp_path: Path) -> None:
    with pytest.raises(PartUnavailable, match=r"cutlass 0\.0\.1 cannot be installed from .+: "):
        LibraryStore(tmp_path).install(LIBRARIES["cutlass"], "0.0.1")
    assert not (tmp_path / "cutlass" / "0.0.1").exists()


@pytest.mark.slow
@pytest.mark.compilers
def test_cells_see_their_own_version(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    toolkit("13.0")
    folder = tmp_path / "cases" / "topic" / "name"
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text(KERNEL)
    (folder / "case.toml").write_text(CASE)
    arguments = ("run", "-b", "nvcc", "-t", "13.0", "-a", "sm_80", "--out", "r.jsonl")
    home = {"CUMATRIX_HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "toolkits").symlink_to(toolkit("13.0").home.parent)
    before = cumatrix.records(*arguments, "--offline", env=home)
    assert {record["status"] for record in before} == {"unavailable"}
    assert "cumatrix toolkits install cutlass==3.4.1" in before[0]["reason"]
    assert cumatrix("toolkits", "install", "--cases", env=home).returncode == 0
    records = cumatrix.records(*arguments, env=home)
    assert [record["status"] for record in records] == ["built", "built"]
    seen = {record["variant"]: record["toolchain"]["observed"]["libraries"]["cutlass"]["headers"] for record in records}
    assert seen == {"cutlass=3.4.1": "3.4.1", "cutlass=4.2.0": "4.2.0"}
    assert len({record["fingerprint"] for record in records}) == 2
