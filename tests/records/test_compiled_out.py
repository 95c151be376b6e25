"""Remarks on code that is compiled out, compared with the code that real assemblers produce of guarded and unguarded programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Command
from record_builders import artifact_of, cell, changed, record

from harness.records import Record, read_records
from harness.records.failures import REMARK, amended, remarks, with_remark
from harness.toolkits import Installed

TARGETS = "sm_50,sm_60,sm_75,sm_80,sm_90,sm_90a,sm_100,sm_120,compute_75,compute_90"

WORK = """
    __shared__ float s[64][65];
    float acc[24] = {};
    for (int i = 0; i < n; ++i) {
        s[threadIdx.x][threadIdx.y] = b[i * 64 + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 24; ++j) acc[j] += s[threadIdx.y][j] * b[j];
        __syncthreads();
    }
    for (int j = 0; j < 24; ++j) a[threadIdx.x * 24 + j] = acc[j];
"""
KERNEL = 'extern "C" __global__ void k(float *a, const float *b, int n) {\n'

GUARDED = {
    "nothing is left below 8.0": (f"#if __CUDA_ARCH__ >= 800{WORK}#endif", {"sm_50", "sm_60", "sm_75", "compute_75"}),
    "a trap below 8.0": (f"#if __CUDA_ARCH__ >= 800{WORK}#else\n__trap();\n#endif", {"sm_50", "sm_60", "sm_75", "compute_75"}),
    "a little is left below 9.0": (
        f"#if __CUDA_ARCH__ >= 900{WORK}#else\na[threadIdx.x] = b[0];\n#endif",
        {"sm_50", "sm_60", "sm_75", "sm_80", "compute_75"},
    ),
    "for one architecture": (
        f"#if __CUDA_ARCH__ == 900{WORK}#endif",
        {"sm_50", "sm_60", "sm_75", "sm_80", "sm_100", "sm_120", "compute_75"},
    ),
    "for one architecture with its suffix": (
        f"#ifdef __CUDA_ARCH_FEAT_SM90_ALL{WORK}#else\n__trap();\n#endif",
        {"sm_50", "sm_60", "sm_75", "sm_80", "sm_90", "sm_100", "sm_120", "compute_75", "compute_90"},
    ),
    "for old ones": (f"#if __CUDA_ARCH__ < 800{WORK}#endif", {"sm_80", "sm_90", "sm_90a", "sm_100", "sm_120", "compute_90"}),
    "a trap everywhere": ("__trap();", set(TARGETS.split(","))),
}  # fmt: skip

WHOLE = {
    "no guard": (KERNEL, WORK),
    "a kernel that is small everywhere": (KERNEL, "a[0] = b[0];"),
    "a kernel that is empty everywhere": (KERNEL, ""),
    "traps that are not taken always": (KERNEL, "if (n > 3) __trap();\na[0] = b[0];"),
    # Newer compilers unroll these loops for newer architectures: five times as many instructions, of the same kinds.
    "a loop that is unrolled": (
        "extern __shared__ float pool[];\n" + KERNEL,
        "float t = 0; for (int i = threadIdx.x; i < n; i += 32) pool[i] = b[i];\n__syncthreads();\nfor (int i = 0; i < n; ++i) t += pool[i];\na[0] = t;",
    ),
    # Older architectures have no instruction for these, and need several.
    "atomics that are emulated": (
        "#include <cuda_fp16.h>\n" + KERNEL,
        "atomicAdd((double *)a, (double)n);\natomicAdd((__half2 *)a + 1, __half2half2(__int2half_rn(n)));",
    ),
    "a type that is emulated": (
        "#include <cuda_fp16.h>\n" + KERNEL,
        "__half y = b[1];\nfor (int i = 2; i < n; ++i) y = hexp(__hmul(y, __half(b[i])));\na[0] = float(y);",
    ),
    "an asynchronous copy with another way": (
        KERNEL,
        """
        __shared__ float s[256];
    #if __CUDA_ARCH__ >= 800
        unsigned place = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(b + threadIdx.x));
        asm volatile("cp.async.wait_all;");
    #else
        s[threadIdx.x] = b[threadIdx.x];
    #endif
        __syncthreads();
        a[threadIdx.x] = s[threadIdx.x ^ 1] * n;
        """,
    ),
}  # fmt: skip


@pytest.fixture
def built(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> Callable[[str], list[dict[str, Any]]]:
    """Return records of a program for all targets. All are built, except features that 5.0 does not have."""

    def built(text: str) -> list[dict[str, Any]]:
        toolkit("12.9")
        (tmp_path / "k.cu").write_text(text)
        found = cumatrix.records("try", tmp_path / "k.cu", "-b", "nvrtc", "-t", "12.9", "-a", TARGETS)
        assert {record["target"] for record in found if record["status"] != "built"} <= {"sm_50"}
        return found

    return built


def remarked(records: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found = {record["target"]: [note for note in record["notes"] if note.startswith(REMARK)] for record in records}
    return {target: notes for target, notes in found.items() if notes}


@pytest.mark.compilers
@pytest.mark.parametrize("name", GUARDED)
def test_code_that_is_compiled_out(built: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    body, targets = GUARDED[name]
    found = remarked(built(KERNEL + body + "\n}"))
    assert found.keys() == targets
    assert all(len(notes) == 1 and notes[0].startswith("remark: k ") for notes in found.values()), "one for each kernel"


@pytest.mark.compilers
@pytest.mark.parametrize("name", WHOLE)
def test_code_that_is_whole(built: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    head, body = WHOLE[name]
    assert remarked(built(head + body + "\n}")) == {}


@pytest.mark.compilers
def test_it_is_told_everywhere(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    """Remarks in the table, in the record file, and in a report of records without remarks."""
    toolkit("12.9")
    (tmp_path / "k.cu").write_text(KERNEL + GUARDED["nothing is left below 8.0"][0] + "\n}")
    out = tmp_path / "r.jsonl"
    # The oldest record comes first: when it is written, its neighbour does not exist yet.
    done = cumatrix("try", "k.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_50,sm_60,sm_80", "-j", "1", "--out", out)
    assert done.returncode == 0
    assert "sm_50: remark: k looks compiled out for sm_50" in done.stderr and "1 more of its targets" in done.stderr
    kept = read_records([out]).records
    assert remarked(kept).keys() == {"sm_50", "sm_60"}
    bare: list[Record] = [{**record, "notes": []} for record in kept]
    assert remarked([with_remark(record, remarks(bare)) for record in bare]) == remarked(kept)


def test_amending_leaves_everything_else_as_it_is() -> None:
    found = {("a", "", "1"): ["remark: k is small"], ("b", "", "1"): ["remark: k is small", "remark: other is small"]}

    def line(**fields: Any) -> bytes:
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")

    first = line(cell="a", run="1", notes=["x"], log="\ud800 é")
    assert amended(first, found) == line(cell="a", run="1", notes=["x", "remark: k is small"], log="\ud800 é")
    for other in (
        line(cell="a", run="2", notes=[]),
        line(cell="a", run="1", program="p", notes=[]),
        line(cell="c", run="1", notes=[]),
    ):
        assert amended(other, found) == other
    told = json.loads(amended(line(cell="b", run="1", notes=["remark: k was said"]), found))
    assert told["notes"] == ["remark: k was said", "remark: other is small"]


@pytest.mark.parametrize("counted", [{"instructions": 90}, {"instructions": 90, "opcodes": 0}, {"opcodes": 9}])
def test_code_that_was_counted_by_half_is_no_obstacle(counted: dict[str, int]) -> None:
    def of(target: str, counted: dict[str, int]) -> Record:
        made = record(cell(target=target))
        return changed(made, artifact={**artifact_of(made), "kernels": [{"name": "k", **counted}]})

    whole = of("sm_90", {"instructions": 90, "opcodes": 9})
    assert remarks([of("sm_80", counted), whole]) == remarks([whole, of("sm_100", counted)]) == {}
