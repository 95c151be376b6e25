"""Options of a cell."""

from __future__ import annotations

import pytest

from harness.cases import options_for
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef

from .conftest import GOOD, Load

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
