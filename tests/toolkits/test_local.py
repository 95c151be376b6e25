"""CUDA toolkits of the machine: copied from an installed toolkit into another folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.errors import UsageError
from harness.toolkits import Installed, parse_toolkits
from harness.toolkits.releases import find_local, local_toolkit


def test_a_folder_without_a_toolkit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is no CUDA toolkit: it has no bin/ptxas"):
        parse_toolkits(f"{tmp_path}/")


def test_a_machine_without_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"this machine has no CUDA 9\.9"):
        parse_toolkits("9.9@local")


@pytest.mark.compilers
def test_a_toolkit_by_its_path(toolkit: Callable[[str], Installed]) -> None:
    home = toolkit("13.0").home
    (ref,) = parse_toolkits(str(home))
    assert (str(ref), ref.release, ref.home) == ("13.0@local", "13.0", str(home))
    assert str(parse_toolkits(f"{home}+headers13.5")[0]) == "13.0@local+headers13.5"


@pytest.mark.compilers
def test_what_is_found_by_its_variable(toolkit: Callable[[str], Installed], monkeypatch: pytest.MonkeyPatch) -> None:
    home = toolkit("12.4").home
    monkeypatch.setenv("CUDA_HOME", str(home))
    assert find_local()["12.4"] == home
    assert [str(ref) for ref in parse_toolkits("12.4@local")] == ["12.4@local"]
    assert "12.4@local" in [str(ref) for ref in parse_toolkits("local")]


@pytest.mark.compilers
def test_a_change_in_it_changes_its_fingerprint(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    home = tmp_path / "cuda"
    (home / "include").mkdir(parents=True)
    (home / "include" / "cuda_runtime.h").write_text("// one")
    (home / "bin").mkdir()
    (home / "bin" / "ptxas").symlink_to(toolkit("12.4").home / "bin" / "ptxas")
    before = local_toolkit(home)
    assert before.release == "12.4"
    assert before.fingerprint == local_toolkit(home).fingerprint
    (home / "include" / "cuda_runtime.h").write_text("// other")
    assert local_toolkit(home).fingerprint != before.fingerprint


@pytest.mark.compilers
def test_cells_run_with_it(toolkit: Callable[[str], Installed], cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text('extern "C" __global__ void one(int *a) { *a = 1; }')
    home = toolkit("13.0").home
    records = cumatrix.records("try", "kernel.cu", "-b", "nvrtc,nvcc", "-t", home, "-a", "sm_80")
    assert [(r["backend"], r["toolkit"], r["status"]) for r in records] == [
        ("nvcc", "13.0@local", "built"), ("nvrtc", "13.0@local", "built"),
    ]  # fmt: skip
    assert {r["toolchain"]["observed"]["cuda_home"] for r in records if r["backend"] == "nvrtc"} == {str(home)}


@pytest.mark.compilers
def test_a_machine_without_network_runs_what_it_has(
    toolkit: Callable[[str], Installed], cumatrix: Command, tmp_path: Path
) -> None:
    """If a header library and another toolkit cannot be installed, their cells are unavailable and the rest is compiled."""
    for name, more in (("own", ""), ("headers", '[libraries]\ncutlass = ["3.5.1"]\n')):
        folder = tmp_path / "cases" / "topic" / name
        folder.mkdir(parents=True)
        (folder / "kernel.cu").write_text('extern "C" __global__ void one(int *a) { *a = 1; }')
        (folder / "case.toml").write_text(
            f'title = "{name}"\nsource = {{ cuda = "kernel.cu" }}\nentry = {{ cuda = ["one"] }}\n{more}'
        )
    env = {
        "CUDA_HOME": str(toolkit("13.0").home), "CUMATRIX_HOME": str(tmp_path / "home"), "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "", "UV_FIND_LINKS": "", "UV_INDEX": "", "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0",
    }  # fmt: skip
    done = cumatrix("run", "-b", "nvrtc", "-t", "13.0@local,12.9", "-a", "sm_80", "--json", env=env)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 4, done.stderr
    statuses = {(record["case"], record["toolkit"]): record["status"] for record in records}
    assert statuses.pop(("topic/own", "13.0@local")) == "built"
    assert set(statuses.values()) == {"unavailable"} and len(statuses) == 3
    (line,) = [line for line in done.stderr.splitlines() if "not installed" in line and "cannot be reached" in line]
    assert line.startswith("cumatrix: not installed: CUDA 12.9, cutlass 3.5.1: 127.0.0.1 cannot be reached: ")
