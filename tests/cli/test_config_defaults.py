"""Precedence of settings: the command line over environment variables over the project's configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.cli.files import programs_of
from harness.cli.selection import of_build
from harness.toolkits import Installed

pytestmark = pytest.mark.called

CONFIG = """
[tool.cumatrix]
sources = ["csrc/*.cu"]
include = ["include"]
backend = "nvrtc"
toolkit = "12.4"
target = "sm_75,sm_80"
results = "out"
page = "out/page"
"""
FILES = {
    "pyproject.toml": CONFIG,
    "include/three.h": "#define THREE 3\n",
    "csrc/scale.cu": '#include "three.h"\nextern "C" __global__ void scale(float *x) { *x *= THREE; }\n',
    "csrc/later.cu": '// cumatrix: expect rejected "undefined" when cc < "8.0"\n#include "three.h"\n'
    "__global__ void later(float *x) {\n#if __CUDA_ARCH__ < 800\n  *x = none;\n#endif\n}\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _from(cumatrix: Command, **environment: str) -> dict[str, tuple[str, str]]:
    done = cumatrix("config", "--json", env=environment)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["key"]: (each["value"], each["from"]) for each in found if "key" in each}


def test_config_tells_where_each_value_is_from(project: Path, cumatrix: Command) -> None:
    said = _from(cumatrix, CUMATRIX_TARGET="sm_90")
    assert said["toolkit"] == ("12.4", "pyproject.toml:6")
    assert said["target"] == ("sm_90", "CUMATRIX_TARGET")
    assert said["cases"] == ("cases", "default")


def test_the_command_line_stands_over_the_environment_over_the_file(project: Path, cumatrix: Command) -> None:
    def targets(*arguments: str, **environment: str) -> int:
        done = cumatrix("run", "--dry-run", "--json", *arguments, env=environment)
        assert done.returncode == 0, done.stderr
        return int(json.loads(done.stdout)["cells"])

    assert targets() == 2 * 2
    assert targets(CUMATRIX_TARGET="sm_90") == 2
    assert targets("-a", "sm_70,sm_75,sm_80", CUMATRIX_TARGET="sm_90") == 2 * 3
    assert targets("csrc/scale.cu") == 2


def test_what_is_wrong_with_the_file_ends_a_command_and_no_help(project: Path, cumatrix: Command) -> None:
    (project / "pyproject.toml").write_text("[tool.cumatrix]\ntolkit = '13.0'\n")
    done = cumatrix("run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'cumatrix: pyproject.toml:2: tool.cumatrix.tolkit: unknown key (did you mean "toolkit"?)\n'
    assert cumatrix("run", "--help").returncode == 0


@pytest.mark.slow
@pytest.mark.compilers
def test_one_command_runs_the_programs_and_writes_the_page(
    project: Path, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    done = cumatrix("run")
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (project / "out" / "local.jsonl").read_text().splitlines()]
    by = {(record["case"], record["target"]): record for record in records}
    assert {key: record["status"] for key, record in by.items()} == {
        ("csrc/later.cu", "sm_75"): "rejected",
        ("csrc/later.cu", "sm_80"): "built",
        ("csrc/scale.cu", "sm_75"): "built",
        ("csrc/scale.cu", "sm_80"): "built",
    }
    refused = by["csrc/later.cu", "sm_75"]
    assert refused["verdict"] == "pass"
    assert (refused["diagnostics"][0]["file"], refused["diagnostics"][0]["line"]) == ("csrc/later.cu", 5)
    assert "-Iinclude" in refused["command"][0] and str(project) not in json.dumps(records)
    page = project / "out" / "page"
    assert (page / "index.html").is_file()
    assert any("void later" in path.read_text() for path in (page / "cases").glob("*.html"))
    # --json writes no records for the configuration's page; requesting the page is an error.
    assert {record["cell"] for record in cumatrix.records("run", "-a", "sm_80")} <= {
        record["cell"] for record in records
    }
    assert cumatrix("run", "-a", "sm_80", "--json", "--page", "other").returncode == 2
    # pytest and try select the same cells from one file, and the header counts for their key.
    (tried,) = cumatrix.records("try", "csrc/scale.cu", "-a", "sm_80")
    assert tried["cached"] and tried["cell"] == by["csrc/scale.cu", "sm_80"]["cell"]
    (project / "include" / "three.h").write_text("#define THREE 4\n")
    (again,) = cumatrix.records("try", "csrc/scale.cu", "-a", "sm_80")
    assert not again["cached"] and again["artifact"]["sha256"] != tried["artifact"]["sha256"]


def test_a_program_with_further_options_is_called_as_try_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the project's folder, too, the printed command works as it is typed."""
    (tmp_path / "cumatrix.toml").write_text('[[programs]]\nname = "mine"\nsources = "sub/a.cu"\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.cu").write_text("__global__ void k() {}\n")
    unit = {"directory": str(tmp_path / "sub"), "file": "a.cu", "command": "nvcc -DX=1 -c a.cu"}
    (tmp_path / "build.json").write_text(json.dumps([unit]))
    monkeypatch.chdir(tmp_path / "sub")
    asked: dict[str, Any] = {"include": (), "rules": {}, "signatures": ()}
    (plain,) = programs_of([Path("a.cu")], define=(), **asked)
    assert (plain.name, plain.program) == ("mine/a.cu", "")
    (defined,) = programs_of([Path("a.cu")], define=("Y=2",), **asked)
    (built,) = of_build([plain], Path("../build.json"))
    assert [(case.name, case.variants[0].name) for case in (defined, built)] == [
        ("a.cu", "-DY=2"),
        ("a.cu", "--compile-commands=../build.json"),
    ]
    assert defined.program == built.program != ""


@pytest.mark.slow
@pytest.mark.compilers
def test_files_of_one_program_are_linked(
    tmp_path: Path, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("13.0")
    (tmp_path / "a.cu").write_text("__device__ int twice(int x);\n__global__ void go(int *x) { *x = twice(*x); }\n")
    (tmp_path / "b.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    (tmp_path / "cumatrix.toml").write_text(
        'toolkit = "13.0"\ntarget = "sm_80"\nbackend = "nvrtc,nvcc"\n[[programs]]\nname = "both"\nsources = "*.cu"\n'
        'together = true\n[[programs.options]]\nrdc = true\n[[programs]]\nname = "alone"\nsources = "a.cu"\n'
        '[[programs.options]]\nrdc = true\n[[programs.expect]]\nstatus = "rejected"\nstage = "link"\n'
    )
    records = cumatrix.records("run")
    said = {(record["case"], record["backend"]): (record["status"], record["stage"]) for record in records}
    assert said == {
        ("both", "nvrtc"): ("built", "link"),
        ("both", "nvcc"): ("built", "link"),
        ("alone/a.cu", "nvrtc"): ("rejected", "link"),
        ("alone/a.cu", "nvcc"): ("rejected", "link"),
    }
    linked = [record["artifact"]["kernels"] for record in records if record["case"] == "both"]
    assert all(any("go" in kernel["name"] for kernel in kernels) for kernels in linked)


@pytest.mark.compilers
def test_pytest_collects_the_programs_and_obeys_the_file(
    project: Path, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    argv = [sys.executable, "-m", "pytest", "pyproject.toml", "-q", "-p", "no:randomly", "--cumatrix-target", "sm_80"]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert len((project / "out" / "local.jsonl").read_text().splitlines()) == 2
    (project / "pyproject.toml").write_text('[tool.cumatrix]\ntarget = "sm_81"\nsources = "csrc/*.cu"\n')
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=300)
    assert "pyproject.toml:2: tool.cumatrix.target: no CUDA release knows sm_81" in done.stdout


def test_init_writes_what_run_compiles_and_nothing_twice(project: Path, cumatrix: Command) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    shown = cumatrix("init", "--dry-run")
    assert shown.returncode == 0 and "[tool.cumatrix]" in shown.stdout
    assert (project / "pyproject.toml").read_text() == '[project]\nname = "mine"\n'
    done = cumatrix("init")
    assert done.returncode == 0, done.stderr
    text = (project / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "mine"\n\n[tool.cumatrix]\n') and done.stdout in text
    assert _from(cumatrix)["target"] == ("sm_75..sm_120", "pyproject.toml:9")
    again = cumatrix("init")
    assert again.returncode == 2 and "configures cumatrix already" in again.stderr
    assert (project / "pyproject.toml").read_text() == text


def test_init_says_when_there_is_nothing(cumatrix: Command) -> None:
    done = cumatrix("init")
    assert (done.returncode, done.stdout) == (3, "")
    assert "cumatrix try FILE" in done.stderr
