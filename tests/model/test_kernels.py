"""Names of kernels, and the kernels that a program requires."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from record_builders import built

from harness.model import Case, Cell, KernelResources, Outcome, Status, Target, Toolchain, ToolkitRef, Variant, Verdict
from harness.model.case import Expectation, RequiredKernels, name_of
from harness.model.condition import Condition
from harness.model.judge import expectation_of, judge, shortfall

# In the forms of NVRTC 13.0, nvcc 13.0 and Numba 0.62.
SYMBOLS = {
    "plain": "plain",
    "_Z5saxpyPf": "saxpy",
    "_Z6reduceIiEvPT_": "reduce",
    "_ZN2ns6reduceIfLi4EEEvPT_": "ns::reduce",
    "_ZL4tinyPf": "tiny",
    "_ZN2ns36_GLOBAL__N__00000000_4_a_cu_783bf47f6hiddenEPf": "ns::hidden",
    "_ZN8__main__5countB2v1B100cw51cXTLSUwv1sDUaKthaKCjYKCpo4DkeVtwuAKDFy2mbUGpDiIMSVRIAqgJBSaB5HDbanVYcKpbKUCjRR0oCeQZ12oCAA_3d_3dE5ArrayIfLi1E1A7mutable7alignedE":
        "__main__::count",
    "_ZN9truncated2a": "_ZN9truncated2a",
    "_Z": "_Z",
    "_ZN": "_ZN",
    "_ZN3fooB99999bar": "_ZN3fooB99999bar",
}  # fmt: skip


@pytest.mark.parametrize(("symbol", "name"), SYMBOLS.items())
def test_a_kernel_is_called_as_in_its_source(symbol: str, name: str) -> None:
    assert name_of(symbol) == name


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="binutils are not installed")
@pytest.mark.parametrize(
    "symbol", [symbol for symbol, name in SYMBOLS.items() if "::" in name or symbol[2:3].isdigit()]
)
def test_the_demangler_of_binutils_finds_the_name(symbol: str) -> None:
    said = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout
    *spaces, own = name_of(symbol).split("::")
    assert all(f"{each}::" in said for each in spaces)
    assert f"{own}<" in said or f"{own}(" in said or f"{own}[" in said


@pytest.mark.parametrize(
    ("required", "sentence"),
    [
        (RequiredKernels(names=("saxpy", "reduce", "ns::hidden", "hidden")), ""),
        (RequiredKernels(names=("_Z5saxpyPf",)), ""),
        (RequiredKernels(names=("axpy",)), "kernel axpy is missing (kernels there: saxpy, reduce (2 instances), ns::hidden)"),
        (
            RequiredKernels(names=("dot", "s::hidden", "saxpy")),
            "kernels dot, s::hidden are missing (kernels there: saxpy, reduce (2 instances), ns::hidden)",
        ),
        (RequiredKernels(count=4), ""),
        (RequiredKernels(count=5), "4 kernels came out where at least 5 must (kernels there: saxpy, reduce (2 instances), ns::hidden)"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(required: RequiredKernels, sentence: str) -> None:
    symbols = ["_Z5saxpyPf", "_Z6reduceIiEvPT_", "_Z6reduceIfEvPT_", "_ZN2ns12_GLOBAL__N_16hiddenEPf"]
    assert required.missing(symbols) == sentence


def test_nothing_is_there() -> None:
    assert RequiredKernels(count=1).missing([]) == "0 kernels came out where at least 1 must (kernels there: none)"


def test_files_of_one_program_require_together() -> None:
    parts = [RequiredKernels(names=("a", "b")), RequiredKernels(count=2)]
    assert RequiredKernels.of_all(parts) == RequiredKernels(names=("a", "b"), count=4)
    assert RequiredKernels.of_all(parts[:1]) == parts[0]


def cell(target: str, *expectations: Expectation) -> Cell:
    case = Case(
        name="a/b", path=Path("case.toml"), title="", kernels=RequiredKernels(names=("scale",)), expectations=expectations
    )  # fmt: skip
    toolchain = Toolchain(backend="nvrtc", library="", toolkit=ToolkitRef(release="13.0", headers="13.0"))
    return Cell(case=case, variant=Variant(labels={}, definitions={}), toolchain=toolchain, target=Target.parse(target))


def test_a_build_without_a_required_kernel_fails() -> None:
    expected = expectation_of(cell("sm_80"))
    assert judge(expected, built()) is Verdict.FAIL
    assert shortfall(expected, built()) == "kernel scale is missing (kernels there: kernel)"
    made = built()
    assert made.artifact is not None
    there = replace(made, artifact=replace(made.artifact, kernels=(KernelResources(name="_Z5scalePf"),)))
    assert judge(expected, there) is Verdict.PASS
    assert shortfall(expected, there) == ""
    # A device refused to launch the artifact: nothing follows for its kernels.
    assert shortfall(expected, replace(made, status=Status.REJECTED)) == ""


def test_an_expectation_says_it_for_some_cells() -> None:
    none = Expectation(when=Condition.parse('cc < "9.0"'), status=Status.BUILT, kernels=RequiredKernels())
    always = Expectation(when=Condition.always(), status=Status.BUILT)
    assert judge(expectation_of(cell("sm_80", none, always)), built()) is Verdict.PASS
    assert judge(expectation_of(cell("sm_90", none, always)), built()) is Verdict.FAIL


def test_what_is_expected_to_be_refused_requires_no_kernel() -> None:
    refused = Expectation(when=Condition.always(), status=Status.REJECTED)
    expected = expectation_of(cell("sm_80", refused))
    assert expected is refused
    assert shortfall(expected, built()) == ""


def code(*tensor_cores: str | None) -> Outcome:
    made = built()
    assert made.artifact is not None
    kernels = tuple(KernelResources(name=f"k{number}", tensor_cores=each) for number, each in enumerate(tensor_cores))
    return replace(made, artifact=replace(made.artifact, kernels=kernels))


@pytest.mark.parametrize(
    ("wanted", "kernels", "sentence"),
    [
        (True, ("", "HMMA"), ""),
        (True, ("", ""), "no kernel uses tensor cores"),
        (False, ("", ""), ""),
        (False, ("IMMA HMMA", "HMMA"), "its kernels use tensor cores (HMMA IMMA)"),
        (True, ("", None), ""),  # unknown
        (False, (), ""),
        (None, ("HMMA",), ""),
    ],
)
def test_an_expectation_says_whether_tensor_cores_are_used(
    wanted: bool | None, kernels: tuple[str | None, ...], sentence: str
) -> None:
    expected = Expectation(when=Condition.always(), status=Status.BUILT, tensor_cores=wanted)
    assert shortfall(expected, code(*kernels)) == sentence
    assert judge(expected, code(*kernels)) is (Verdict.FAIL if sentence else Verdict.PASS)


@pytest.mark.parametrize("tensor_cores", [None, True, False])
def test_missing_kernels_are_reported_before_tensor_cores(tensor_cores: bool | None) -> None:
    expected = Expectation(
        when=Condition.always(), status=Status.BUILT, kernels=RequiredKernels(names=("scale",)), tensor_cores=tensor_cores
    )  # fmt: skip
    outcome = code("HMMA" if tensor_cores else "")
    assert shortfall(expected, outcome) == "kernel scale is missing (kernels there: k0)"
    assert judge(expected, outcome) is Verdict.FAIL
