"""cuda.core: behaviour of single releases, in addition to the contract (test_contract.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cells import Place
from venvs import python_with

from harness.backends.cuda_core import take
from harness.model import Status
from harness.protocol.backend import Unsupported
from harness.toolkits import ToolkitStore

PLAIN = "__global__ void k(float *x) { x[threadIdx.x] *= 2; }"
LAUNCHES = 'extern "C" __global__ void c(int *a) { *a = 1; }\nextern "C" __global__ void k(int *a) { c<<<1, 1>>>(a); }'
APART = "__device__ float other(float); __global__ void k(float *x) { *x = other(*x); }"


@pytest.fixture(scope="module", params=[pytest.param("cuda-core==0.4.2", marks=pytest.mark.slow), "cuda-core==1.2.2"])
def place(request: pytest.FixtureRequest, store: ToolkitStore, toolkit: Callable[[str], object]) -> Iterator[Place]:
    for release in ("12.4", "12.9", "13.0"):
        toolkit(release)
    made = Place(python_with(request.param), store)
    yield made
    made.close()


@pytest.mark.compilers
def test_code_is_that_of_nvrtc(place: Place) -> None:
    for target in ("sm_90a", "compute_80"):
        own, control = (place.run(backend, "12.9", PLAIN, target) for backend in ("cuda-core", "nvrtc"))
        assert own.status is control.status is Status.BUILT
        assert own.artifact is not None
        assert control.artifact is not None
        assert own.artifact.kernels == control.artifact.kernels


@pytest.mark.compilers
def test_relocatable_code_is_linked_by_its_linker(place: Place) -> None:
    built = place.run("cuda-core", "12.9", PLAIN, "sm_80", options={"rdc": True})
    assert built.status is Status.BUILT
    assert str(built.stages[-1]) == "link"
    assert "Linker(" in built.command[-1]
    refused = place.run("cuda-core", "12.9", APART, "sm_80", options={"rdc": True})
    assert (refused.status, str(refused.stage)) == (Status.REJECTED, "link")
    assert "other" in refused.diagnostics[0].message
    early = place.run("cuda-core", "12.4", APART, "sm_80", options={"rdc": True})
    assert (early.status, str(early.stage)) == (Status.REJECTED, "link")
    left = place.run("cuda-core", "12.4", LAUNCHES, "sm_80", options={"rdc": True})
    assert (left.status, str(left.stage)) == (Status.BUILT, "assemble")
    assert [note for note in left.notes if note.startswith("not linked: PyPI") and "__cudaCDP2LaunchDeviceV2" in note]


@pytest.mark.compilers
def test_bindings_are_for_one_major_release(place: Place) -> None:
    found = place.run("cuda-core", "13.0", PLAIN, "sm_80")
    assert found.status is Status.UNSUPPORTED
    assert found.reason == "cuda-bindings 12.9.10 is for CUDA 12; CUDA 13.0 needs cuda-core[cu13]"


@pytest.mark.compilers
def test_an_option_that_it_has_no_word_for_is_not_applicable(place: Place) -> None:
    found = place.run("cuda-core", "12.9", PLAIN, "sm_80", options={"flags": ["--no-such-option"]})
    assert found.status is Status.UNSUPPORTED
    assert "no word for --no-such-option" in found.reason
    assert (
        place.run("cuda-core", "12.9", PLAIN, "sm_80", options={"flags": ["-lineinfo", "--maxrregcount=32"]}).status
        is Status.BUILT
    )


@pytest.mark.parametrize(
    ("flag", "fields"),
    [
        ("-lineinfo", {"lineinfo": True}),
        ("--fmad=false", {"fma": False}),
        ("-maxrregcount=32", {"max_register_count": 32}),
        ("--ptxas-options=-v", {"ptxas_options": ["-v"]}),
        ("-UDEBUG", {"undefine_macro": ["DEBUG"]}),
        ("-dc", {"relocatable_device_code": True}),
    ],
)
def test_options_of_nvrtc_are_fields_of_program_options(flag: str, fields: dict[str, Any]) -> None:
    options: dict[str, Any] = {}
    take(flag, options)
    assert options == fields


@pytest.mark.parametrize("flag", ["--nonsense", "-O3", "--fmad", "-lineinfo=2"])
def test_other_options_have_no_word(flag: str) -> None:
    with pytest.raises(Unsupported, match=f"no word for {flag}"):
        take(flag, {})
