"""Programs that a configuration names, as cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cases.rules import include_of, options_for
from harness.cases.toml import CaseError
from harness.model import Case, Cell, Status, Target, Toolchain, ToolkitRef
from harness.model.case import RequiredKernels
from harness.project.config import read_config
from harness.project.programs import configured, program_for

from .conftest import Configure


def cases_of(path: Path) -> dict[str, Case]:
    return {case.name: case for case in configured(read_config(path))}


def _options(case: Case, backend: str) -> dict[str, object]:
    toolchain = Toolchain(backend=backend, library="", toolkit=ToolkitRef(release="13.0", headers="13.0"))
    return options_for(Cell(case=case, variant=case.variants[0], toolchain=toolchain, target=Target.parse("sm_80")))


def test_a_pattern_names_programs_and_leaves_other_files(configure: Configure, project: Path) -> None:
    cases = cases_of(configure('sources = ["csrc/**/*", "python/*.py"]\nexclude = ["csrc/deep/*"]\n'))
    assert {name: list(case.sources) for name, case in cases.items()} == {
        "csrc/scale.cu": ["cuda"],
        "python/axpy.py": ["python"],
    }
    assert cases["csrc/scale.cu"].root == project


def test_texts_of_a_python_file_are_programs_with_its_options(configure: Configure, project: Path) -> None:
    call = 'cupy.RawKernel("__global__ void add(float *x) {}", "add", options=("-lineinfo",))\n'
    (project / "python" / "raw.py").write_text(f"import cupy\nk = {call}")
    both = f"from numba import cuda\nk = {call}@cuda.jit('void(float32[:])')\ndef axpy(x):\n    x[0] = 1\n"
    (project / "python" / "both.py").write_text(both)
    path = configure('sources = ["python/raw.py", "python/both.py"]\ninclude = ["include"]\nflags = ["-w"]\n')
    cases = cases_of(path)
    assert {name: list(case.sources) for name, case in cases.items()} == {
        "python/raw.py:add": ["cuda"], "python/both.py:add": ["cuda"], "python/both.py": ["python"],
    }  # fmt: skip
    options = _options(cases["python/raw.py:add"], "nvrtc")
    assert options["flags"] == ["-w", "-lineinfo"]
    assert options["include"] == [str(project / "include")]
    whole = program_for(read_config(path), project / "python" / "both.py")
    assert whole is not None and whole.name == "python/both.py"


def test_options_go_to_the_backend_that_they_name(configure: Configure, project: Path) -> None:
    (case,) = cases_of(
        configure(
            'sources = "csrc/scale.cu"\ninclude = ["include"]\ndefine = ["N=4", "FAST"]\nstd = "c++17"\n'
            'flags = ["-lineinfo", "nvcc:-O3"]\n[[options]]\nwhen = \'backend == "nvrtc"\'\nflags = ["-w"]\ninclude = ["csrc"]\n'
        )
    ).values()
    assert case.variants[0].definitions == {"N": 4, "FAST": 1}
    nvcc, nvrtc = _options(case, "nvcc"), _options(case, "nvrtc")
    assert (nvcc["flags"], nvrtc["flags"], nvcc["std"]) == (["-lineinfo", "-O3"], ["-lineinfo", "-w"], "c++17")
    assert include_of(case, nvrtc) == [project / "include", project / "csrc"]
    assert include_of(case, nvcc) == [project / "include"]


def test_programs_of_their_own_take_what_stands_on_top(configure: Configure) -> None:
    cases = cases_of(
        configure(
            'include = ["include"]\ndefine = { N = 1 }\n[[expect]]\nwhen = \'cc < "7.0"\'\nstatus = "rejected"\n'
            '[[programs]]\nname = "all"\nsources = ["csrc/**/*.cu"]\ntogether = true\n'
            '[[programs]]\nname = "wide"\nsources = ["csrc/scale.cu"]\ndefine = { N = 8 }\nfeatures = ["atomics"]\n'
            '[programs.parameters]\nwidth = [1, 2]\n[[programs.expect]]\nwhen = "width == 2"\nstatus = "built"\n'
        )
    )
    assert set(cases) == {"all", "wide/scale.cu"}
    together, wide = cases["all"], cases["wide/scale.cu"]
    assert [path.name for path in (together.sources["cuda"], *together.together)] == ["shift.cu", "scale.cu"]
    assert [variant.definitions for variant in wide.variants] == [{"N": 8, "WIDTH": 1}, {"N": 8, "WIDTH": 2}]
    assert [rule.status for rule in wide.expectations] == [Status.BUILT, Status.REJECTED]
    assert [rule.status for rule in together.expectations] == [Status.REJECTED]


def test_a_source_says_what_is_expected_of_it(configure: Configure, project: Path) -> None:
    (project / "csrc" / "scale.cu").write_text('// cumatrix: expect rejected "undefined" when cc < "8.0"\n')
    (case,) = cases_of(configure('sources = "csrc/scale.cu"\n[[expect]]\nstatus = "crashed"\n')).values()
    assert [(rule.status, rule.diagnostic) for rule in case.expectations] == [
        (Status.REJECTED, "undefined"),
        (Status.CRASHED, None),
    ]


def test_a_file_that_no_table_names_takes_what_stands_on_top(configure: Configure, project: Path) -> None:
    config = read_config(configure('sources = "csrc/scale.cu"\ninclude = ["include"]\n'))
    other = program_for(config, project / "csrc" / "deep" / "shift.cu")
    assert other is not None and other.name == "csrc/deep/shift.cu"
    assert include_of(other, _options(other, "nvrtc")) == [project / "include"]
    assert program_for(read_config(configure('target = "sm_80"\n')), project / "csrc" / "scale.cu") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('sources = "src/*.cu"\n', "cumatrix.toml:1: sources: no file matches 'src/*.cu'"),
        ('sources = ["csrc/scale.cu", "csrc/none.cu"]\n', "cumatrix.toml:1: sources: there is no file 'csrc/none.cu'"),
        ('sources = "../x.cu"\n', "cumatrix.toml:1: sources: '../x.cu' is not in the project"),
        ('sources = "include/three.h"\n', "cumatrix.toml:1: sources: include/three.h is neither CUDA C++"),
        ('sources = "csrc/*.cu"\ninclude = "inc"\n', "cumatrix.toml:2: include: there is no folder 'inc'"),
        ('sources = "csrc/*.cu"\nflags = ["nvc:-O3"]\n', "cumatrix.toml:2: flags: nvc:-O3: unknown backend 'nvc'"),
        ('sources = "csrc/*.cu"\nbackends = ["nvc"]\n', "cumatrix.toml:2: backends: unknown backend 'nvc'"),
        ('sources = "csrc/*.cu"\nexclude = "csrc/*"\n', "cumatrix.toml:2: exclude: leaves no file"),
        ('sources = "csrc/*.cu"\nlanguage = "python"\n', "cumatrix.toml:2: language: python is not the language"),
        ('[[programs]]\nname = "x"\n', "cumatrix.toml:1: programs.sources: is missing"),
        ('[[programs]]\nsources = "csrc/**/*.cu"\ntogether = true\n', "cumatrix.toml:1: programs.name: is missing"),
        (
            '[[programs]]\nsources = "csrc/*.cu"\n[[programs.expect]]\nstatus = "fine"\n',
            "cumatrix.toml:4: programs.expect.status: 'fine' is not one of",
        ),
        (
            '[[programs]]\nsources = "csrc/*.cu"\n[[programs.expect]]\nwhen = "cd > 1"\nstatus = "built"\n',
            "cumatrix.toml:4: programs.expect.when: ",
        ),
        ('[[programs]]\nsources = "csrc/*.cu"\n[[programs]]\nsources = "csrc/*.cu"\n', "cumatrix.toml:1: programs: csrc/scale.cu is named twice"),
        ('sources = "csrc/*.cu"\n[kernels]\n"csrc/none.cu" = 1\n', "cumatrix.toml:3: kernels.csrc/none.cu: no file matches, seen from"),
        ('sources = "csrc/*.cu"\n[kernels]\n"csrc/*.cu" = [""]\n', "cumatrix.toml:2: kernels: 'csrc/*.cu' entry 1 must be the name of a kernel"),
        ('sources = "csrc/*.cu"\nkernels = -1\n', "cumatrix.toml:2: kernels: must be names of kernels such as"),
        ('[[programs]]\nsources = "csrc/*.cu"\n[programs.kernels]\n"csrc/none.cu" = 1\n', "cumatrix.toml:4: programs.kernels.csrc/none.cu: no file matches"),
        ('extension = "setup.py"\n', "cumatrix.toml:1: extension: setup.py cannot be read"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_line_and_key(configure: Configure, text: str, words: str) -> None:
    with pytest.raises(CaseError) as caught:
        cases_of(configure(text))
    assert str(caught.value).startswith(words), caught.value


def test_kernels_are_required_by_program_file_or_pattern(configure: Configure) -> None:
    one = cases_of(configure('sources = ["csrc/**/*.cu"]\nkernels = ["scale"]\n'))
    assert {case.kernels for case in one.values()} == {RequiredKernels(names=("scale",))}
    table = '[kernels]\n"csrc/scale.cu" = ["scale"]\n"csrc/**/*.cu" = 2\n'
    two = cases_of(
        configure(
            f'[[programs]]\nsources = ["csrc/**/*.cu", "python/axpy.py"]\n{table}'.replace("[ker", "[programs.ker")
        )
    )
    assert {name: case.kernels for name, case in two.items()} == {
        "csrc/scale.cu": RequiredKernels(names=("scale",)), "csrc/deep/shift.cu": RequiredKernels(count=2), "python/axpy.py": None,
    }  # fmt: skip
    whole = 'name = "all"\nsources = ["csrc/**/*.cu"]\ntogether = true\n'
    three = cases_of(configure(f"{table}[[programs]]\n{whole}"))
    assert three["all"].kernels == RequiredKernels(names=("scale",), count=3)


def test_a_parameter_counts_before_a_definition_of_the_build(configure: Configure, project: Path) -> None:
    entry = {"directory": ".", "file": "csrc/scale.cu", "arguments": ["nvcc", "-DN=7", "-DM=1", "-c", "csrc/scale.cu"]}
    (project / "commands.json").write_text(json.dumps([entry]))
    (case,) = cases_of(configure('commands = "commands.json"\nparameters = { N = [1, 2] }\n')).values()
    assert [dict(each.definitions) for each in case.variants] == [{"N": 1, "M": 1}, {"N": 2, "M": 1}]
