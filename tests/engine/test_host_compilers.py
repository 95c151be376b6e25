"""Host compilers as an axis: names in ``--host-compiler`` and ``host_compilers`` of a case. The compilers are scripts that print a version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends import BACKENDS
from harness.engine.environment import Environment
from harness.engine.plan import plan
from harness.engine.program_axes import HostCompilers, install, own, parse_host_compilers, version_of
from harness.engine.toolchain import PreparedToolchain
from harness.errors import UsageError
from harness.model import Case, Cell, Status, Target, ToolkitRef
from harness.model.cell import host_named
from harness.toolkits import ToolkitStore

SAYS = """#!/bin/sh
case "$1" in
--version) echo "{said}" ;;
*) printf '#define __GLIBC__ 2\\n#define __GLIBC_MINOR__ {glibc}\\n' ;;
esac
"""


def compiler(path: Path, said: str, glibc: int = 36) -> Path:
    """Write a script that acts as a compiler when asked for its version."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(SAYS.format(said=said, glibc=glibc))
    path.chmod(0o755)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create the only folder on PATH, with two compilers."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    compiler(tmp_path / "bin" / "g++-11", "g++-11 (Debian 11.3.0-12) 11.3.0")
    compiler(tmp_path / "bin" / "clang++-16", "Debian clang version 16.0.6 (15~deb12u1)")
    return tmp_path / "bin"


@pytest.fixture
def case(tmp_path: Path) -> Case:
    (tmp_path / "kernel.cu").touch()
    return Case(name="host/x", path=tmp_path / "kernel.cu", title="x", sources={"cuda": tmp_path / "kernel.cu"})


def cells(case: Case, hosts: HostCompilers, *backends: str) -> list[Cell]:
    here = Environment(name="e", python="python", version="3.11.7", distributions={})
    toolkits, targets = [ToolkitRef(release="13.0", headers="13.0")], [Target.parse("sm_80")]
    return plan([case], [BACKENDS[name] for name in backends], toolkits, targets, here, host_compilers=hosts)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gcc-11,clang-16", ["gcc-11", "clang-16"]),
        ("gcc-10..gcc-12", ["gcc-10", "gcc-11", "gcc-12"]),
        ("all", ["gcc-11", "clang-16"]),
        ("gcc-11,gcc-11", ["gcc-11"]),
    ],
)
def test_names_ranges_and_all(folder: Path, text: str, names: list[str]) -> None:
    assert [each.name for each in parse_host_compilers([text])] == names


def test_versions_are_asked_of_the_compiler_and_else_follow_from_the_name(folder: Path) -> None:
    old, missing, clang = parse_host_compilers(["gcc-11,gcc-13,clang-16"])
    assert (old.version, missing.version, clang.version) == (
        "gcc 11.3.0, glibc 2.36", "gcc 13", "clang 16.0.6, glibc 2.36",
    )  # fmt: skip
    assert clang.versions == {"gcc": "", "clang": "16.0.6", "glibc": "2.36"}


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("gcc (GCC) 14.2.1 20240912 (Red Hat 14.2.1-3)", "gcc 14.2.1"),
        ("c++ (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "gcc 13.3.0"),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang 18.1.3"),
        ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 12.4.0-0) 12.4.0", "gcc 12.4.0"),
        ("something else 3.0", ""),
    ],
)
def test_what_compilers_say_of_themselves(tmp_path: Path, said: str, version: str) -> None:
    assert version_of(str(compiler(tmp_path / "bin" / "cc", said))).partition(",")[0] == version


def test_a_path_is_called_after_its_version_or_as_one_likes(folder: Path, tmp_path: Path) -> None:
    new = compiler(tmp_path / "opt" / "g++", "g++ (GCC) 15.1.0", glibc=42)
    plain, given = parse_host_compilers([f"{new},new-glibc={new}"])
    assert (plain.name, given.name) == ("gcc-15.1.0", "new-glibc")
    assert plain.program == given.program == str(new)
    assert given.versions["glibc"] == "2.42"
    other = compiler(tmp_path / "other" / "g++", "g++ (GCC) 15.1.0")
    with pytest.raises(UsageError, match=r"are both named gcc-15\.1\.0: rename one of them"):
        parse_host_compilers([f"{new},{other}"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gcc", "write gcc-11,gcc-13"),
        ("gcc-14..gcc-11", "write gcc-11,gcc-13"),
        ("gcc-11..clang-16", "write gcc-11,gcc-13"),
        ("/nowhere/g++", "is not a program"),
        ("Big Name=/nowhere/g++", "is no name of small letters"),
        (",", "no compiler is named"),
    ],
)
def test_what_cannot_be_read_is_told_with_examples(folder: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_host_compilers([text])


def test_a_program_that_is_neither_is_refused(folder: Path, tmp_path: Path) -> None:
    odd = compiler(tmp_path / "opt" / "cc", "tcc version 0.9.27")
    with pytest.raises(UsageError, match="names neither gcc nor clang"):
        parse_host_compilers([str(odd)])


def test_only_cells_of_nvcc_have_the_axis_and_their_ids_say_so(folder: Path, case: Case) -> None:
    chosen = HostCompilers(parse_host_compilers(["gcc-11,gcc-13"]))
    assert [cell.id for cell in cells(case, chosen, "nvrtc", "nvcc")] == [
        "host/x nvrtc cuda13.0 sm_80",
        "host/x nvcc cuda13.0 sm_80 with gcc-11",
        "host/x nvcc cuda13.0 sm_80 with gcc-13",
    ]
    facts = cells(case, chosen, "nvcc")[0].facts()
    assert (str(facts["gcc"]), facts["clang"], str(facts["glibc"])) == ("11.3.0", None, "2.36")


def test_of_a_cases_own_those_that_are_there_are_taken_and_the_others_told(
    folder: Path, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    wanting = replace(case, name="host/told", host_compilers=("gcc-11", "gcc-13", "clang-17"))
    assert [cell.toolchain.host.name for cell in cells(wanting, HostCompilers(), "nvcc")] == ["gcc-11"]
    said = capsys.readouterr().err
    assert "host/told: skipped, because this machine lacks them: gcc-13, clang-17" in said
    assert "apt-get install g++-13 clang-17" in said
    named = HostCompilers(parse_host_compilers(["clang-16"]))
    assert [cell.toolchain.host.name for cell in cells(wanting, named, "nvcc")] == ["clang-16"]


def test_without_any_it_is_the_machines_own_whose_version_conditions_know(
    folder: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cell,) = cells(case, HostCompilers(), "nvcc")
    assert cell.id == "host/x nvcc cuda13.0 sm_80"
    assert cell.facts()["gcc"] is None  # this PATH has no gcc
    monkeypatch.setenv("NVCC_CCBIN", str(folder / "g++-11"))
    assert own().version == "gcc 11.3.0, glibc 2.36"
    (cell,) = cells(case, HostCompilers(), "nvcc")
    assert str(cell.facts()["gcc"]) == "11.3.0"


def test_one_that_is_not_there_is_unavailable_with_what_installs_it(folder: Path, case: Case, tmp_path: Path) -> None:
    (cell,) = cells(case, HostCompilers(parse_host_compilers(["gcc-13"])), "nvcc")
    here = Environment(name="e", python="python", version="3.11.7", distributions={})
    problem = PreparedToolchain.of(cell.toolchain, here, ToolkitStore(tmp_path), tmp_path).problem
    assert problem is not None
    assert problem.status is Status.UNAVAILABLE
    assert "apt-get install g++-13" in problem.reason
    assert not install(["gcc-13.2.0"])


def test_a_name_tells_what_is_run() -> None:
    assert (host_named("clang-16").program, host_named("gcc-13", "gcc 13.2.0, glibc 2.39").versions["gcc"]) == (
        "clang++-16",
        "13.2.0",
    )
    assert host_named("my-own").program == host_named("my-own").version == ""
