"""Options for relocatable device code: the code is linked, or the record says that it was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.artifacts import is_relocatable
from harness.toolkits import Installed

pytestmark = [pytest.mark.called, pytest.mark.compilers]

WHOLE = 'extern "C" __global__ void k(int *a) { *a = 1; }'
PART = '__device__ int elsewhere(int);\nextern "C" __global__ void k(int *a) { *a = elsewhere(1); }'
LAUNCHES = 'extern "C" __global__ void c(int *a) { *a = 1; }\nextern "C" __global__ void k(int *a) { c<<<1, 1>>>(a); }'
LINKED = [
    ("--option=-rdc=true",),
    ("--option=--relocatable-device-code=true",),
    ("--option=-rdc", "--option=true"),
    ("--option=-dlto",),
    ("--option=--dlink-time-opt",),
]
AXES = {
    "nvrtc": ("-b", "nvrtc", "-t", "12.9"),
    "nvcc": ("-b", "nvcc", "-t", "13.0"),
    "nvcc, device alone": ("-b", "nvcc", "-t", "13.0", "--device-only"),
}


@pytest.fixture
def attempt(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Try a text for one target; return its record."""

    def attempt(text: str, *arguments: str, target: str = "sm_80") -> dict[str, Any]:
        toolkit(arguments[arguments.index("-t") + 1])
        (tmp_path / "k.cu").write_text(text)
        (record,) = cumatrix.records("try", tmp_path / "k.cu", *arguments, "-a", target)
        return record

    return attempt


@pytest.mark.parametrize(
    ("axes", "options"),
    [
        *(("nvrtc", options) for options in LINKED[2:4]),
        ("nvcc", LINKED[0]),
        *(pytest.param("nvrtc", options, marks=pytest.mark.slow) for options in (*LINKED[:2], LINKED[4])),
        *(
            pytest.param(axes, LINKED[index], marks=pytest.mark.slow)
            for axes, index in (("nvcc", 3), ("nvcc, device alone", 0), ("nvcc, device alone", 3))
        ),
    ],
)
def test_it_is_linked(attempt: Callable[..., dict[str, Any]], axes: str, options: tuple[str, ...]) -> None:
    record = attempt(WHOLE, *AXES[axes], *options)
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "link", "cubin"), record
    assert not any(note.startswith("not linked") for note in record["notes"])
    assert "k" in {kernel["name"] for kernel in record["artifact"]["kernels"]}
    refused = attempt(PART, *AXES[axes], *options)
    assert (refused["status"], refused["stage"]) == ("rejected", "link"), refused
    assert "_Z9elsewherei" in refused["diagnostics"][0]["message"]


@pytest.mark.parametrize(
    ("axes", "option"),
    [
        ("nvrtc", "-dc"), ("nvcc", "--device-c"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (
            ("nvrtc", "--device-c"), ("nvcc", "-dc"), ("nvcc, device alone", "-dc"), ("nvcc, device alone", "--device-c"),
        )),
    ],
)  # fmt: skip
def test_one_file_of_several_is_not_linked_and_says_so(
    attempt: Callable[..., dict[str, Any]], axes: str, option: str
) -> None:
    record = attempt(PART, *AXES[axes], f"--option={option}")
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "assemble", "object")
    assert [note for note in record["notes"] if note.startswith("not linked: with -dc")]


@pytest.mark.parametrize("axes", AXES)
def test_what_asks_for_none_is_left_alone(attempt: Callable[..., dict[str, Any]], axes: str) -> None:
    record = attempt(WHOLE, *AXES[axes], "--option=-rdc=false")
    assert (record["stage"], record["artifact"]["format"], record["notes"]) == ("assemble", "cubin", [])


def test_a_toolkit_that_cannot_link(attempt: Callable[..., dict[str, Any]]) -> None:
    record = attempt(WHOLE, "-b", "nvrtc", "-t", "11.8", "--option=-rdc=true")
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "assemble", "object")
    assert record["notes"] == ["not linked: CUDA 11.8 has no nvJitLink (it came with 12.0)"]
    # Link-time optimization generates code only when linking: there is nothing to show.
    record = attempt(WHOLE, "-b", "nvrtc", "-t", "11.8", "--option=-dlto")
    assert record["status"] == "unavailable" and "no nvJitLink" in record["reason"]


def test_without_libcudadevrt_the_rest_is_linked(attempt: Callable[..., dict[str, Any]]) -> None:
    asked = ("-b", "nvrtc", "-t", "12.4", "--option=-rdc=true")
    record = attempt(WHOLE, *asked)
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "link", "cubin")
    assert record["notes"] == [
        "linked without libcudadevrt, which it does not call: PyPI's wheels of CUDA 12.4 have no libcudadevrt.a"
    ]
    refused = attempt(PART, *asked)
    assert (refused["status"], refused["stage"]) == ("rejected", "link")
    assert "Undefined reference to '_Z9elsewherei'" in refused["log"]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_what_calls_a_missing_libcudadevrt_is_not_linked(attempt: Callable[..., dict[str, Any]], target: str) -> None:
    record = attempt(LAUNCHES, "-b", "nvrtc", "-t", "12.4", "--option=-rdc=true", target=target)
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "assemble", "object")
    (note,) = record["notes"]
    assert note.startswith("not linked: PyPI's wheels of CUDA 12.4 have no libcudadevrt.a, and the program calls ")
    assert note.endswith("__cudaCDP2GetParameterBufferV2, __cudaCDP2LaunchDeviceV2")
    linked = attempt(LAUNCHES, "-b", "nvrtc", "-t", "12.9", "--option=-rdc=true", target=target)
    assert (linked["status"], linked["stage"], linked["notes"]) == ("built", "link", [])


@pytest.mark.parametrize("backend", ["nvrtc", "nvcc"])
def test_link_time_optimization_for_a_virtual_target(attempt: Callable[..., dict[str, Any]], backend: str) -> None:
    record = attempt(WHOLE, "-b", backend, "-t", "13.0", "--option=-dlto", target="compute_80")
    assert record["status"] == "unsupported" and "real architecture" in record["reason"]


@pytest.mark.parametrize("release", ["12.4", "12.9"])
def test_cupy_links_it_itself(attempt: Callable[..., dict[str, Any]], venv: Callable[..., str], release: str) -> None:
    python = venv("cupy-cuda12x==13.1.0")
    record = attempt(WHOLE, "-b", "cupy-nvrtc", "-t", release, "--python", python, "--option=-rdc=true")
    assert (record["status"], record["stage"], record["artifact"]["format"]) == ("built", "link", "cubin")
    assert not any(note.startswith("not linked") for note in record["notes"])


def test_relocatable_is_read_from_the_code() -> None:
    assert not is_relocatable(b"")
    assert not is_relocatable(b"\x7fELF" + bytes(12) + b"\x02\x00")
    assert is_relocatable(b"\x7fELF" + bytes(12) + b"\x01\x00")
