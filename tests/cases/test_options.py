"""Options of a cell."""

from __future__ import annotations

import pytest

from harness.cases.rules import options_for, releases_named
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef

from .conftest import GOOD, Load, Wrong

RULES = """
[parameters]
arch = ["given", "implicit"]

[[options]]
std = "c++14"
flags = ["-a"]

[[options]]
when = 'backend == "cupy-jitify" and arch == "given"'
arch = "given"
std = "c++17"
flags = ["-b"]

[[options]]
when = 'toolkit >= "13.0"'
flags = ["-c"]
rdc = true
"""


def cell(case: Case, backend: str, variant: int = 0, toolkit: str = "12.4") -> Cell:
    return Cell(
        case=case,
        variant=case.variants[variant],
        toolchain=Toolchain(backend=backend, library="", toolkit=ToolkitRef(release=toolkit, headers=toolkit)),
        target=Target.parse("sm_80"),
    )


def test_later_tables_win_and_lists_add_up(load: Load) -> None:
    case = load(GOOD + RULES)
    assert options_for(cell(case, "cupy-jitify", 0)) == {
        "arch": "given",
        "std": "c++17",
        "flags": ["-a", "-b"],
    }
    assert options_for(cell(case, "cupy-jitify", 1)) == {"arch": "implicit", "std": "c++14", "flags": ["-a"]}
    assert options_for(cell(case, "nvrtc", 1, "13.0")) == {
        "arch": "given",
        "std": "c++14",
        "flags": ["-a", "-c"],
        "rdc": True,
    }


def test_the_case_keeps_its_own_lists(load: Load) -> None:
    case = load(GOOD + RULES)
    options_for(cell(case, "nvrtc"))["flags"].append("-x")
    assert options_for(cell(case, "nvrtc"))["flags"] == ["-a"]


@pytest.mark.parametrize(
    ("backend", "arch"),
    [("nvrtc", "given"), ("cupy-nvrtc", "implicit"), ("cupy-jitify", "implicit"), ("numba", "implicit")],
)
def test_the_architecture_is_left_to_libraries_that_know_the_device(load: Load, backend: str, arch: str) -> None:
    assert options_for(cell(load(GOOD), backend)) == {"arch": arch}


FINISHED = """
[parameters.pair]
plain = {}
older = { ASSEMBLER = "12.4", MADE_FOR = "compute_80" }

[[options]]
assembler = "ASSEMBLER"
compile_for = "MADE_FOR"
linker = "13.0"
"""


def test_an_option_may_be_named_by_a_definition_and_goes_where_there_is_none(load: Load) -> None:
    case = load(GOOD + FINISHED)
    assert options_for(cell(case, "nvrtc", 0)) == {"arch": "given", "linker": "13.0"}
    older = cell(case, "nvrtc", 1)
    assert options_for(older) == {"arch": "given", "assembler": "12.4", "compile_for": "compute_80", "linker": "13.0"}
    assert releases_named(older) == {"assembler": "12.4", "linker": "13.0"}


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ('assembler = "12.99"', "assembler: '12.99' is no CUDA release that cumatrix knows"),
        ('linker = "LINKR"', "linker: 'LINKR' is no CUDA release"),
        ('linker = "PAIR"', "linker: 'old' is no CUDA release that cumatrix knows"),
        ('compile_for = "sm_80"', "compile_for: 'sm_80' is no virtual architecture"),
        ('compile_for = "compute_81"', "compile_for: 'compute_81' is no virtual architecture"),
        ("assembler = 12.4", "assembler: must be a CUDA release such as"),
    ],
)
def test_what_finishes_code_must_be_known(wrong: Wrong, option: str, says: str) -> None:
    (said,) = wrong(f'{GOOD}\n[parameters]\npair = ["old"]\n\n[[options]]\n{option}\n')
    assert says in said
    assert "case.toml:13" in said
