"""Running from Python: the same cells and sentences as the command's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cells import REJECTED, write_case

import cumatrix
from cumatrix._run import TryOptions, words_of

KERNEL = "__global__ void twice(float *a) { a[threadIdx.x] *= N; }"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "nvrtc,nvcc", "toolkit": ["12.4", "13.0"], "target": None}, ["--backend=nvrtc,nvcc", "--toolkit=12.4,13.0"]),
        ({"with_": {"cupy": ["13.0", "14"]}, "library": "cutlass=4.0"}, ["--with=cupy=13.0,14", "--library=cutlass=4.0"]),
        ({"with_": ["-e ../numba-cuda"], "limit": {"stack": "64M", "cpu": 60}}, ["--with=-e ../numba-cuda", "--limit=stack=64M", "--limit=cpu=60"]),
        ({"cache": False, "offline": True, "sanitize": False}, ["--no-cache", "--offline"]),
        ({"define": {"N": 4, "ON": True, "BARE": None}, "std": "c++17"}, ["-DN=4", "-DON=1", "-DBARE", "--std=c++17"]),
        ({"option": ["-lineinfo", "nvcc:-O3"], "include": Path("a b")}, ["-lineinfo", "--option=nvcc:-O3", "-Ia b"]),
        ({"signature": {"axpy": "void(float32[:])"}, "total_memory": "8G"}, ["--signature=axpy=void(float32[:])", "--total-memory=8G"]),
    ],
)  # fmt: skip
def test_keywords_are_words_of_the_command(options: dict[str, Any], words: list[str]) -> None:
    assert words_of("try_", options, TryOptions.__annotations__) == words


def test_an_unknown_keyword_is_told_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"run\(\) has no keyword 'toolkits' \(did you mean \"toolkit\"\?\)"):
        cumatrix.run(toolkits="12.9")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"backend": "nvrct"}, "unknown backend 'nvrct'"),
        ({"toolkit": "12.99"}, "unknown CUDA release '12.99'"),
        ({"target": "sm_81"}, "no CUDA release knows sm_81"),
        ({"jobs": 0}, "0 is not in the range"),
        ({"where": "statos == 1"}, "statos"),
    ],
)
def test_errors_are_the_command_s_sentences(tmp_path: Path, options: Any, sentence: str) -> None:
    kernel = tmp_path / "kernel.cu"
    kernel.write_text(KERNEL)
    with pytest.raises(cumatrix.UsageError, match=sentence):
        cumatrix.try_(kernel, **options)


def test_files_and_cases_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cumatrix.UsageError, match=r"none\.cu.*does not exist"):
        cumatrix.try_("none.cu")
    with pytest.raises(cumatrix.UsageError, match="there is no folder of cases at cases"):
        cumatrix.run()
    with pytest.raises(cumatrix.UsageError, match="neither cuda nor python"):
        cumatrix.try_("a {}", language="rust")


def test_the_module_is_the_command(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "cumatrix", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == f"cumatrix, version {cumatrix.__version__}\n"


@pytest.mark.compilers
def test_a_text_is_tried(toolkit: Any) -> None:
    toolkit("12.9")
    seen: list[tuple[int, int]] = []
    results = cumatrix.try_(
        KERNEL, define={"N": 3}, backend="nvrtc", toolkit="12.9", target=["sm_80", "sm_90"],
        progress=lambda done, total, _cell: seen.append((done, total)),
    )  # fmt: skip
    assert seen == [(1, 2), (2, 2)]
    assert results.as_expected
    assert [each.target for each in results] == ["sm_80", "sm_90"]
    assert results[0].kernels[0].name == "_Z5twicePf"
    again = cumatrix.try_(KERNEL, define={"N": 3}, backend="nvrtc", toolkit="12.9", target="sm_80")
    assert again[0].cached, "the same text is the same program"
    refused = cumatrix.try_(KERNEL, backend="nvrtc", toolkit="12.9", target="sm_80")
    assert refused[0].message == 'identifier "N" is undefined'
    assert not refused.as_expected


@pytest.mark.compilers
def test_cases_are_run_and_given_as_they_finish(tmp_path: Path, toolkit: Any) -> None:
    toolkit("12.9")
    write_case(tmp_path, "a/good", "__global__ void good(int *a) { *a = 1; }")
    write_case(tmp_path, "a/wrong", "__global__ void wrong(int *a) { *a = missing; }", REJECTED.format("is undefined"))
    out = tmp_path / "out.jsonl"
    kept = cumatrix.run(cases=tmp_path, backend="nvrtc", toolkit="12.9", target="sm_80", out=out)
    assert kept.as_expected
    assert {each.case: each.status for each in kept} == {"a/good": "built", "a/wrong": "rejected"}
    assert {each.id for each in cumatrix.read(out)} == {each.id for each in kept}

    cells = cumatrix.iter_run(
        "a/good", cases=tmp_path, backend="nvrtc", toolkit="12.9", target="sm_75..sm_90", jobs=1, cache=False
    )
    first = next(cells)
    assert first.built
    cells.close()  # type: ignore[attr-defined]  # what is under way is ended
    assert list(cells) == []

    nothing = cumatrix.run(
        "a/good", cases=tmp_path, backend="nvrtc", toolkit="12.9", target="sm_50,sm_121", where="target == 'sm_50'"
    )
    assert nothing[0].status in ("built", "unsupported")
