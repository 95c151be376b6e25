"""What other distributions add by entry points: with distributions that are made for the test, seen by commands as users have them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from venvs import python_with

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "backend"


def distribution(folder: Path, name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]) -> None:
    """A distribution as an installer leaves it."""
    for file, text in modules.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in named.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A folder in which the example of the documentation is installed."""
    folder = tmp_path / "installed"
    shutil.copytree(EXAMPLE / "src", folder)
    import tomllib

    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    distribution(folder, "cumatrix_example_backend", points, {})
    return folder


def run(folder: Path, *argv: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command with what lies in a folder."""
    env = {**os.environ, "PYTHONPATH": str(folder), **variables}
    return subprocess.run(
        [sys.executable, *map(str, argv)], env=env, capture_output=True, text=True, cwd=folder.parent, timeout=600
    )


def test_what_cannot_be_used_is_told_and_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "installed"
    distribution(
        folder, "broken",
        {"cumatrix.backends": {"gone": "no_such_module:INFO", "nvrtc": "mine:MINE", "odd": "mine:NUMBER", "other": "mine:MINE"},
         "cumatrix.causes": {"torn": "mine:TABLE"}, "cumatrix.libraries": {"mylib": "mine:LIBRARY"}, "cumatrix.exporters": {"number": "mine:NUMBER"}},
        {"mine.py": "from cumatrix.backend import BackendInfo, Library\nLIBRARY = Library(distributions={'mylib': ''})\nNUMBER = 1\nTABLE = 'none.toml'\n"
                    "MINE = BackendInfo(name='mine', title='', module='mine', languages=('cuda',))\n"},
    )  # fmt: skip
    asked = (
        "from harness.backends import BACKENDS; from harness.causes import catalogue; from harness.report.build import EXPORTERS\n"
        "from harness.plugins import problems; from harness.model.condition import Condition; import json\n"
        "Condition.parse('mylib < \"2\"')\n"
        "print(json.dumps([list(BACKENDS), len(catalogue()) > 50, list(EXPORTERS), BACKENDS['nvrtc'].place, problems()]))"
    )
    done = run(folder, "-c", asked)
    assert done.returncode == 0, done.stderr
    names, causes, exporters, place, problems = json.loads(done.stdout)
    assert (names[0], names[-1], causes, exporters, place) == ("nvrtc", "cuda-core", True, [], "")
    assert problems == [
        "broken 1.0: its gone in cumatrix.backends cannot be loaded (no_such_module:INFO): ModuleNotFoundError: No module named 'no_such_module'",
        "nvrtc in cumatrix.backends is left out: cumatrix has one of that name",
        "odd in cumatrix.backends is left out: it is no cumatrix.backend.BackendInfo",
        "other in cumatrix.backends is left out: its BackendInfo is called 'mine', and the entry point 'other'",
        "torn in cumatrix.causes is left out: FileNotFoundError: [Errno 2] No such file or directory: 'none.toml'",
        "number in cumatrix.exporters is left out: it is no function of records",
    ]
    off = run(folder, "-c", asked, CUMATRIX_NO_PLUGINS="1")
    assert "unknown name 'mylib'" in off.stderr
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("__global__ void k() {}")
    said = run(folder, "-m", "cumatrix", "try", kernel, "-b", "gone")
    assert said.returncode == 2
    assert problems[0] in said.stderr
    assert said.stderr.splitlines()[-1].startswith("cumatrix: unknown backend 'gone'; known are nvrtc")


def test_an_executor_of_another_distribution_compiles(tmp_path: Path, toolkit: Callable[[str], object]) -> None:
    toolkit("12.9")
    folder = tmp_path / "installed"
    distribution(
        folder, "slow", {"cumatrix.executors": {"told": "told:Told"}},
        {"told.py": "import sys\nfrom harness.engine.executor import ThreadExecutor\nclass Told(ThreadExecutor):\n    def run(self, cells):\n"
                    "        print(f'told of {len(cells)}', file=sys.stderr)\n        yield from super().run(cells)\n"},
    )  # fmt: skip
    kernel = tmp_path / "kernel.cu"
    kernel.write_text("__global__ void k() {}")
    done = run(
        folder,
        "-m",
        "cumatrix",
        "try",
        kernel,
        "-b",
        "nvrtc",
        "-t",
        "12.9",
        "-a",
        "sm_80,sm_90",
        "--executor",
        "told",
        "--no-cache",
    )
    assert done.returncode == 0, done.stderr
    assert "told of 2" in done.stderr
    wrong = run(folder, "-m", "cumatrix", "try", kernel, "--executor", "tolled")
    assert (wrong.returncode, wrong.stderr) == (2, "cumatrix: unknown executor 'tolled' (did you mean \"told\"?)\n")


@pytest.mark.compilers
def test_the_example_keeps_to_the_contract(example: Path, toolkit: Callable[[str], object]) -> None:
    toolkit("12.9")
    python = python_with("cuda-core==1.2.2")
    done = run(
        example, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull, EXAMPLE / "tests" / "test_contract.py",
        CUMATRIX_PYTHON=python,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


@pytest.mark.slow
@pytest.mark.compilers
def test_causes_and_exports_of_the_example(example: Path, toolkit: Callable[[str], object]) -> None:
    toolkit("12.9")
    place = example.parent
    (place / "kernel.cu").write_text('#include "example_of_cumatrix.h"\n__global__ void k() {}\n')
    done = run(
        example, "-m", "cumatrix", "try", "kernel.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--out", "some.jsonl"
    )
    assert done.returncode == 1
    assert "The header of this example is not installed" in done.stderr
    for _ in range(2):  # the second report takes the place of the first
        made = run(example, "-m", "cumatrix", "report", "some.jsonl", "--out", "html", "--export", "tap")
        assert made.returncode == 0, made.stderr
    tap = (place / "html" / "exports" / "tap" / "matrix.tap").read_text()
    assert tap == "TAP version 14\n1..1\nnot ok 1 - kernel.cu nvrtc cuda12.9 sm_80\n"
    wrong = run(example, "-m", "cumatrix", "report", "some.jsonl", "--out", "html", "--export", "tip")
    assert (wrong.returncode, wrong.stderr) == (2, "cumatrix: unknown exporter 'tip' (did you mean \"tap\"?)\n")
