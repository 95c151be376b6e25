"""Command lines of a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.model import Case
from harness.project.commands import read_command, unit_of, units_of
from harness.project.detect import with_unit

COMMAND = (
    "/usr/local/cuda/bin/nvcc -forward-unknown-to-host-compiler -DN=7 -D FAST -I../include -isystem=/usr/include/eigen3 -Usecret "
    "--generate-code=arch=compute_80,code=[sm_80] -gencode arch=compute_90,code=sm_90 -O3 -std=c++17 -fPIC -Xcompiler=-Wall,-Wextra "
    "-use_fast_math --expt-relaxed-constexpr -maxrregcount 64 -rdc=true --weird -MD -MT a.o -MF a.d -x cu -c ../csrc/scale.cu -o a.o"
)


def test_every_word_goes_where_it_belongs(project: Path) -> None:
    unit = read_command(COMMAND.split(), project / "build", project / "csrc" / "scale.cu")
    assert (unit.include, unit.system) == ((str(project / "include"),), ("/usr/include/eigen3",))
    assert unit.targets == ("sm_80", "sm_90")
    assert unit.define == ("N=7", "FAST")
    assert (unit.std, unit.rdc) == ("c++17", True)
    assert unit.flags == (
        "-Usecret", "nvcc:-O3", "nvcc:-Xcompiler=-fPIC", "nvcc:-Xcompiler=-Wall,-Wextra", "--use_fast_math",
        "nvcc:--expt-relaxed-constexpr", "-maxrregcount=64", "nvcc:--weird",
    )  # fmt: skip
    assert unit.dropped == (
        "--generate-code arch=compute_80,code=[sm_80]", "-gencode arch=compute_90,code=sm_90",
    )  # fmt: skip
    # Only nvcc has the full list of its options.
    clang = read_command(
        "clang++ -x cuda --weird -c ../csrc/scale.cu".split(), project / "build", project / "csrc" / "scale.cu"
    )
    assert clang.dropped == ("--weird",)


def _database(project: Path, *entries: object) -> Path:
    (project / "build").mkdir(exist_ok=True)
    path = project / "build" / "compile_commands.json"
    path.write_text(json.dumps(entries))
    return path


def test_a_database_has_units_by_file(project: Path) -> None:
    folder = str(project / "build")
    path = _database(
        project,
        {"directory": folder, "file": "../csrc/scale.cu", "command": COMMAND},
        {"directory": folder, "file": "../csrc/bind.cpp", "command": "c++ -c ../csrc/bind.cpp"},
        {"directory": folder, "file": "../csrc/deep/shift.cu", "arguments": ["nvcc", "-DQUOTED=a b", "-c", "x"]},
    )
    assert [unit.file.name for unit in units_of(path)] == ["scale.cu", "shift.cu"]
    assert unit_of(path, Path("csrc/deep/shift.cu")).define == ("QUOTED=a b",)
    with pytest.raises(UsageError, match=r"no command for csrc/bind\.cpp; it compiles scale\.cu, shift\.cu"):
        unit_of(path, Path("csrc/bind.cpp"))


def test_a_program_takes_the_build_s_command_line(project: Path) -> None:
    path = _database(project, {"directory": str(project / "build"), "file": "../csrc/scale.cu", "command": COMMAND})
    plain = Case(name="scale.cu", path=Path("csrc/scale.cu"), title="x", sources={"cuda": Path("csrc/scale.cu")})
    case = with_unit(plain, unit_of(path, Path("csrc/scale.cu")), path)
    assert case.variants[0].name == "--compile-commands=build/compile_commands.json"
    assert case.variants[0].definitions == {"N": 7, "FAST": 1}
    assert case.options[0].values["rdc"] is True and case.options[0].values["std"] == "c++17"
    assert case.options[1].when.text == 'backend == "nvcc" or backend == "torch-nvcc"'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no JSON"),
        ("{}", "is no compilation database"),
        ("[1]", "entry 1: has no file"),
        ('[{"directory": "/x", "file": "a.cu"}]', "entry 1: has neither arguments nor a command"),
        ('[{"directory": "/x", "file": "a.cu", "command": "nvcc \'"}]', "entry 1: its command cannot be read"),
        ('[{"directory": "/x", "file": "a.cu", "command": "nvcc a\\u0000b"}]', "entry 1: has a NUL"),
        ('[{"directory": "/x", "file": "a.cu", "arguments": ["nvcc", "\\ud800"]}]', "entry 1: has a NUL or half"),
    ],
)
def test_what_is_no_database_is_told(project: Path, text: str, words: str) -> None:
    (project / "compile_commands.json").write_text(text)
    with pytest.raises(UsageError) as caught:
        units_of(project / "compile_commands.json")
    assert words in str(caught.value) and str(caught.value).startswith("compile_commands.json")


def test_a_device_is_no_database(project: Path) -> None:
    with pytest.raises(UsageError, match="is no file"):
        units_of(Path("/dev/zero"))


def test_options_in_a_file_are_read_as_cmake_writes_them(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "includes_CUDA.rsp").write_text(f'-I"{tmp_path}/a b" -isystem ../include -optf again.rsp\n')
    words = "nvcc --options-file includes_CUDA.rsp -DN=4 -optf none.rsp -c ../a.cu".split()
    unit = read_command(words, tmp_path / "build", tmp_path / "a.cu")
    assert (unit.include, unit.system) == ((f"{tmp_path}/a b",), (str(tmp_path / "include"),))
    assert (unit.define, unit.dropped) == (("N=4",), ("again.rsp", "-optf none.rsp"))
