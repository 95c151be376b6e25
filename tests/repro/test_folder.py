"""Content of a folder, without a compiler: from records of any origin."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from record_builders import built, changed, record, rejected

from harness.cases.discovery import load_cases
from harness.cases.sources import packaged_cases
from harness.errors import UsageError
from harness.model import Cell, Outcome, Stage, Status, Target, Toolchain, ToolkitRef
from harness.records import Record
from harness.repro.folder import find, make_folder, readme
from harness.repro.script import SCRIPT, script_of
from harness.repro.subject import ReproTarget, Wheels, subject_of, wheels_of


def cell(case: str = "exceptions/throw", backend: str = "nvrtc", release: str = "12.9", **more: Any) -> Cell:
    """Return a cell of the library of cases."""
    (found,) = load_cases(packaged_cases(), [case])
    packages = more.pop("packages", {"python": "3.11.7"})
    toolkit = ToolkitRef(release=release, headers=more.pop("headers", release))
    toolchain = Toolchain(backend=backend, library=more.pop("library", ""), toolkit=toolkit, packages=packages)
    return Cell(
        case=found, variant=found.variants[0], toolchain=toolchain, target=Target.parse(more.pop("target", "sm_80"))
    )


def subject(of: Cell | None = None, outcome: Outcome | None = None, **values: Any) -> ReproTarget:
    of = of or cell()
    made = changed(record(of, outcome or rejected(observed={"nvrtc": of.toolchain.toolkit.release})), **values)
    return subject_of(made, of.case)


def made(what: ReproTarget, out: Path, beside: tuple[Record, ...] = ()) -> Path:
    make_folder(what, [what.record, *beside], out)
    return out


def test_the_whole_folder_of_nvrtc(tmp_path: Path) -> None:
    out = made(subject(), tmp_path / "out")
    names = ["README.md", "cuda_home.py", "kernel.cu", "record.json", "repro.py", "requirements.txt"]
    assert sorted(path.name for path in out.iterdir()) == names
    source = packaged_cases() / "exceptions" / "throw" / "kernel.cu"
    assert (out / "kernel.cu").read_bytes() == source.read_bytes()
    requirements = (out / "requirements.txt").read_text()
    assert re.search(
        r"^nvidia-cuda-nvrtc-cu12==12\.9\.86 \\\n    --hash=sha256:[0-9a-f]{64}", requirements, re.MULTILINE
    )
    script = (out / SCRIPT).read_text()
    assert "--gpu-architecture=sm_80" in script and "-Icuda/include" in script
    assert not re.search(r"^\s*(?:from|import) (?:harness|cumatrix)", script, re.MULTILINE)


@pytest.mark.parametrize(
    ("backend", "case", "more"),
    [
        ("nvrtc", "cooperative/grid-sync", {}),
        ("nvcc", "exceptions/throw", {"release": "13.0"}),
        ("cupy-nvrtc", "shared-memory/cupy-8156", {"library": "13.6.0"}),
        ("cupy-jitify", "shared-memory/cupy-8156", {"library": "12.3.0", "headers": "12.1"}),
        ("cupy-nvrtc", "cupy/reduction-kernel", {"library": "14.2.0", "target": "compute_90"}),
        ("numba", "cooperative/numba-9432", {"library": "0.59.0"}),
        ("numba-cuda", "shared-memory/static", {"library": "0.24.0", "target": "compute_90"}),
        ("numba-cuda-mlir", "numba/tuples", {"library": "0.4.0", "target": "sm_90a"}),
        ("cuda-core", "exceptions/throw", {"library": "0.4.2"}),
        ("cuda-core", "cooperative/grid-sync", {"library": "1.2.2", "release": "13.0"}),
        ("torch-nvcc", "exceptions/torchao-1648", {"library": "2.11.0", "release": "13.0"}),
        ("torch-nvcc", "cooperative/torch-extension", {"library": "2.11.0", "release": "13.0"}),
    ],
)
def test_every_script_and_what_stands_beside_it_is_python(backend: str, case: str, more: dict[str, Any]) -> None:
    what = subject(cell(case, backend, **more), rejected(stages=(Stage.COMPILE, Stage.LINK)))
    contents = script_of(what).contents()
    for name, data in contents.items():
        if name.endswith(".py"):
            compile(data, name, "exec")
    assert len(contents[SCRIPT].splitlines()) < 50
    own = set(re.findall(rb"^import (\w+)$", contents[SCRIPT], re.MULTILINE)) - {
        name.encode() for name in sys.stdlib_module_names
    }
    assert {f"{name.decode()}.py" for name in own - {b"cupy", b"torch"}} <= set(contents)


@pytest.mark.parametrize("backend", ["nvrtc", "nvcc", "cuda-core", "torch-nvcc"])
def test_a_script_compiles_every_file_of_a_program(backend: str, tmp_path: Path) -> None:
    of = cell("exceptions/throw", backend, "13.0", library="1.2.2" if backend == "cuda-core" else "2.11.0")
    for name in ("cuda/a.cu", "cuda/b.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("__global__ void kernel() {}\n")
    files = [tmp_path / "cuda" / "a.cu", tmp_path / "cuda" / "b.cu"]
    several = replace(of, case=replace(of.case, sources={"cuda": files[0]}, together=(files[1],)))
    what = subject_of(record(several, rejected(stages=(Stage.COMPILE, Stage.LINK))), several.case)
    text = script_of(what).contents()[SCRIPT].decode()
    compile(text, SCRIPT, "exec")
    places = ["a.cu", "b.cu"] if backend != "cuda-core" else ["program/a.cu", "program/b.cu"]
    assert [place for place in places if f'"{place}"' in text] == places == list(what.program.files)
    assert "a.cu and 1 more file" in readme(what, script_of(what), [], find(what.record, [what.record]))


def test_a_folder_of_the_programs_with_a_name_of_the_folders_own(tmp_path: Path) -> None:
    of = cell()
    for name in ("cuda/a.cu", "other/b.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("__global__ void kernel() {}\n")
    case = replace(of.case, sources={"cuda": tmp_path / "cuda" / "a.cu"}, together=(tmp_path / "other" / "b.cu",))
    what = subject_of(record(replace(of, case=case), rejected()), case)
    assert list(what.program.files) == ["program/cuda/a.cu", "program/other/b.cu"]


def test_the_stand_in_for_a_gpu_is_told_of() -> None:
    what = subject(cell("cooperative/numba-9432", "numba", "12.4", library="0.59.0"))
    text = readme(what, script_of(what), [Wheels("requirements.txt", "", "")], find(what.record, [what.record]))
    assert "Where this machine has no GPU of compute capability 8.0, `virtual_gpu.py` stands in for one" in text
    assert "uv pip install --python .venv --no-deps --require-hashes -r requirements.txt" in text


def test_a_program_of_cupys_own_api_is_given_what_it_finds_in_a_run(tmp_path: Path) -> None:
    what = subject(cell("cupy/reduction-kernel", "cupy-nvrtc", library="13.6.0"))
    contents = script_of(what).contents()
    text = contents[SCRIPT].decode()
    assert "globals().update({'DEFINED': True, 'JITIFY': False, 'OPTIONS': (), 'TYPE': 'float16'})" in text
    assert b"import harness" not in contents["c_table.py"] and b"from harness" not in contents["c_table.py"]
    shim = readme(what, script_of(what), [], find(what.record, [what.record]))
    assert "`cupy_runtime.py` stands in for CUDA's runtime and driver, too" in shim


def test_what_a_compiler_says_cannot_leave_its_place_in_the_readme() -> None:
    evil = "```\n# Heading\n<script>alert(1)</script>\x1b]0;x\x07"
    what = subject(outcome=rejected("[x](javascript:y) `z` | <b>", log=evil), title="a | <i>\n# b")
    text = readme(what, script_of(what), [], find(what.record, [what.record]))
    assert "\x1b" not in text
    assert re.search(r"^````\n```\n# Heading\n<script>", text, re.MULTILINE)
    assert "\n````\n" in text[text.index("# Heading") :]
    assert "\\[x\\](javascript:y)" in text and "\\<i\\> \\# b" in text


@pytest.mark.parametrize(
    "packages",
    [
        {"nvidia-cuda-nvrtc-cu12": "12.9.86\n-r /etc/passwd"},
        {"nvidia @ https://evil.example/x.whl": "1.0"},
        {"--extra-index-url=x": "1.0"},
        {"nvidia-cuda-nvrtc-cu12": "12.9.86 --hash=sha256:0"},
    ],
)
def test_a_record_puts_nothing_else_into_requirements(packages: dict[str, str]) -> None:
    what = subject(outcome=rejected(observed={"wheels": packages}))
    with pytest.raises(UsageError, match="which is no version of a wheel"):
        wheels_of(what)


def test_texts_of_a_record_stay_texts_in_the_script() -> None:
    what = subject()
    evil = replace(what, job=replace(what.job, definitions={"X": '";import os;os.abort()#'}))
    script = script_of(evil).contents()[SCRIPT].decode()
    assert "-DX=" in script
    assert not [line for line in script.splitlines() if line.startswith((";", "import os;"))]
    named = changed(what.record, cell="a\nimport os; os.abort()")
    first = script_of(replace(what, record=named)).contents()[SCRIPT].decode().splitlines()[:2]
    assert first == ["# a import os; os.abort()", "import ctypes"]


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR])
def test_what_no_compiler_answered_cannot_be_shown(status: Status) -> None:
    with pytest.raises(UsageError, match=r"there is nothing to show \(because\)"):
        subject(outcome=Outcome(status=status, reason="because"))


def test_what_failed_on_a_device_is_refused() -> None:
    with pytest.raises(UsageError, match="failed at launch, on a real device"):
        subject(outcome=rejected(), stage="launch")


def test_a_variant_that_the_case_has_no_more() -> None:
    with pytest.raises(UsageError, match="any more: run the case again"):
        subject(variant="bytes=3")


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made(subject(), tmp_path / "out")
    before = sorted((tmp_path / "out").iterdir())
    with pytest.raises(UsageError, match="already exists"):
        made(subject(), tmp_path / "out")
    assert sorted((tmp_path / "out").iterdir()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_program_with_a_file_of_the_folders_names(tmp_path: Path) -> None:
    what = subject()
    what.program.files["repro.py"] = what.program.files["kernel.cu"]
    with pytest.raises(UsageError, match=r"the program has a file repro\.py"):
        made(what, tmp_path / "out")


def test_a_build_names_what_came_out() -> None:
    what = subject(outcome=built("sm_80"))
    text = readme(what, script_of(what), [], find(what.record, [what.record]))
    assert "built: cubin for sm\\_80, 4312 bytes, with `kernel`" in text


def test_without_wheels_the_script_says_what_to_do(tmp_path: Path) -> None:
    out = made(subject(), tmp_path / "out")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; sys.path.insert(0, '.'); import cuda_home; cuda_home.lay_out('cuda', 'none')"], cwd=out, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "install them as README.md says" in done.stderr


@pytest.mark.parametrize("release", ['12.9"); import os; os.abort(); ("', "12.9\n", "12", 12.9, None])
def test_a_record_puts_no_release_into_a_script_that_is_none(release: Any) -> None:
    what = subject()
    toolchain = {**what.record["toolchain"], "requested": {**what.record["toolchain"]["requested"], "toolkit": release}}
    with pytest.raises(UsageError, match="does not tell which toolkit"):
        subject_of(changed(what.record, toolchain=toolchain), what.cell.case)


def test_a_cuda_of_the_machines_own_is_the_users_to_name(tmp_path: Path) -> None:
    what = subject(cell("exceptions/throw", "nvcc"))
    requested = {**what.record["toolchain"]["requested"], "cuda_home": "/tmp/elsewhere"}
    local = subject_of(
        changed(what.record, toolchain={**what.record["toolchain"], "requested": requested}), what.cell.case
    )
    out = made(local, tmp_path / "out")
    assert 'cuda = os.environ["CUDA_HOME"]' in (out / SCRIPT).read_text()
    assert "/tmp/elsewhere" not in (out / SCRIPT).read_text()
    assert not list(out.glob("requirements*.txt"))
    assert "export CUDA_HOME=" in (out / "README.md").read_text()
