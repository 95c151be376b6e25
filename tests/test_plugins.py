"""Entry points of other distributions: the tests build distributions, and commands load them as they do for users."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from answers.node import said_by_script
from venvs import python_with

from harness.repro.reduce import Shown, difference

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "backend"


def distribution(folder: Path, name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]) -> None:
    """Write a distribution as an installer leaves it."""
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
    """Return a folder with the example of the documentation installed."""
    folder = tmp_path / "installed"
    shutil.copytree(EXAMPLE / "src", folder)
    import tomllib

    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    distribution(folder, "cumatrix_example_backend", points, {})
    return folder


def run(folder: Path, *argv: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Return a command that runs in a folder with these files."""
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
    assert (names[0], names[-1], causes, exporters, place) == ("nvrtc", "hip-clang", True, [], "")
    assert problems == [
        "broken 1.0: its gone in cumatrix.backends cannot be loaded (no_such_module:INFO): ModuleNotFoundError: No module named 'no_such_module'",
        "nvrtc in cumatrix.backends is left out: cumatrix has one of that name",
        "odd in cumatrix.backends is left out: it is no cumatrix.backend.BackendInfo",
        "other in cumatrix.backends is left out: its BackendInfo is called 'mine', and the entry point 'other'",
        "torn in cumatrix.causes is left out: FileNotFoundError: [Errno 2] No such file or directory: 'none.toml'",
        "number in cumatrix.exporters is left out: it is not a function of records",
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


SHADER = {
    "shader/__init__.py": """\
from cumatrix.backend import BackendInfo

INFO = BackendInfo(
    name="shaderc", title="a compiler of shaders", label="Shader C", aliases=("shady",), tracker="https://example.org/shader/lang/issues/new",
    module="shader.backend", languages=("cuda",), repro="shader.script:script",
)
""",
    "shader/backend.py": """\
from cumatrix.backend import Nvrtc, Ready, Rejected


class Shader:
    def prepare(self, setup):
        self.nvrtc = Nvrtc(setup)
        return Ready(observed={}, architectures=self.nvrtc.architectures(), architectures_of="Shader C 1")

    def compile(self, setup, job):
        job.enter("compile")
        if job.capability < (9, 0):
            job.say("kernel.cu(1): error: a shader has no threads before 9.0")
            raise Rejected("Shader C refuses it", stage="compile")
        code, log, program = self.nvrtc.compile(job.source.read_bytes(), "kernel.cu", ["-arch=" + job.target])
        job.enter("assemble")
        job.keep(self.nvrtc.get(program, "CUBIN"), "cubin")


backend = Shader()
""",
    "shader/script.py": """\
from cumatrix.repro_script import Script


def script(subject):
    text = f"if {subject.job.capability} < (9, 0):\\n    raise SystemExit('kernel.cu(1): error: a shader has no threads before 9.0')\\n"
    return Script(text + "print('built')\\n", files=(), device="Shader C needs no GPU.")
""",
}
"""Write a distribution with a backend: NVRTC that rejects every program for architectures before 9.0."""

NEXT_STEPS = """{
    const { next } = require("./load.js");
    const { file, record } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
    globalThis.cumatrix = { receive: (name, text) => { globalThis.matrix = JSON.parse(require("node:zlib").inflateSync(Buffer.from(text, "base64"))); } };
    require("node:vm").runInThisContext(require("node:fs").readFileSync(file, "utf8"));
    const about = { title: record.title, place: "", files: {}, libraries: [], trackers: matrix.trackers };
    const steps = next.steps((key) => record[key], record, about);
    console.log(JSON.stringify(steps.find((step) => step.title === "Report it upstream").links));
}"""
"""A program of the page's script: the forms that list a cell's reports."""


@pytest.fixture
def shader(tmp_path: Path, toolkit: Callable[[str], object]) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Return the folder with the installed backend of shaders, and the records of a run by target."""
    toolkit("12.9")
    folder = tmp_path / "installed"
    distribution(folder, "shader", {"cumatrix.backends": {"shaderc": "shader:INFO"}}, SHADER)
    case = tmp_path / "cases" / "shaders" / "light"
    case.mkdir(parents=True)
    (case / "case.toml").write_text(
        'title = "Light in a shader"\nfeatures = ["light"]\n\n[source]\ncuda = "kernel.cu"\n'
    )
    (case / "kernel.cu").write_text("__global__ void k() {}\n")
    done = run(
        folder, "-m", "cumatrix", "run", "-b", "shaderc", "-t", "12.9", "-a", "sm_80,sm_90", "--out", "some.jsonl"
    )
    assert done.returncode == 1, done.stderr
    records = map(json.loads, (tmp_path / "some.jsonl").read_text().splitlines())
    return folder, {record["target"]: record for record in records if "target" in record}


def test_a_backend_known_by_its_entry_point_has_a_column_and_a_tracker(
    shader: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    folder, records = shader
    assert {target: record["status"] for target, record in records.items()} == {"sm_80": "rejected", "sm_90": "built"}
    made = run(folder, "-m", "cumatrix", "report", "some.jsonl", "--out", "html")
    assert made.returncode == 0, made.stderr
    html = folder.parent / "html"
    assert "| Case | shaderc<br>CUDA 12.9 |" in (html / "matrix.md").read_text()
    assert "Shader C" in (html / "index.html").read_text()
    file = str(html / "data" / "matrix.js")
    ((name, link),) = said_by_script(NEXT_STEPS, {"file": file, "record": records["sm_80"]})
    assert name == "shader/lang"
    assert link.startswith("https://example.org/shader/lang/issues/new?title=")


@pytest.mark.parametrize("name", ["Shader C", "shady", "shaderc"])
def test_a_backend_known_by_its_entry_point_is_asked_for_by_name(
    shader: tuple[Path, dict[str, dict[str, Any]]], name: str
) -> None:
    folder, _ = shader
    done = run(folder, "-m", "cumatrix", "ask", "light", name, "sm_80", "--results", "some.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [(chip["kind"], chip["name"]) for chip in answer["chips"]] == [("word", "light"), ("tool", "shaderc"), ("target", "sm_80")]  # fmt: skip
    assert [of_tool["backend"] for finding in answer["findings"] for of_tool in finding["tools"]] == ["shaderc"]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_repro_writes_the_script_of_a_backend_known_by_its_entry_point(
    shader: tuple[Path, dict[str, dict[str, Any]]], target: str
) -> None:
    folder, records = shader
    made = run(folder, "-m", "cumatrix", "repro", records[target]["cell"], "--results", "some.jsonl", "--out", "shown")
    assert made.returncode == 0, made.stderr
    out = folder.parent / "shown"
    shown = subprocess.run([sys.executable, "-I", "repro.py"], cwd=out, capture_output=True, text=True, timeout=60)
    assert difference(records[target], Shown(shown.returncode, shown.stdout + shown.stderr)) == ""  # type: ignore[arg-type]
    text = (out / "README.md").read_text()
    assert "Shader C needs no GPU." in text
    assert "Report it at <https://example.org/shader/lang/issues/new>." in text


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
    for _ in range(2):  # the second report replaces the first
        made = run(example, "-m", "cumatrix", "report", "some.jsonl", "--out", "html", "--export", "tap")
        assert made.returncode == 0, made.stderr
    tap = (place / "html" / "exports" / "tap" / "matrix.tap").read_text()
    assert tap == "TAP version 14\n1..1\nnot ok 1 - kernel.cu nvrtc cuda12.9 sm_80\n"
    wrong = run(example, "-m", "cumatrix", "report", "some.jsonl", "--out", "html", "--export", "tip")
    assert (wrong.returncode, wrong.stderr) == (2, "cumatrix: unknown exporter 'tip' (did you mean \"tap\"?)\n")
