"""What entries of the catalogue say of releases and architectures, asked of the toolkits themselves."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import harness.causes
from harness.causes import catalogue, causes_of, explain_log
from harness.cli.execute import KeptRecords

from .provoke import ask_nvrtc, ask_tool
from .test_catalogue import made

Homes = Callable[[str], Path]
CAUSES = catalogue()


@pytest.fixture(scope="session")
def home(toolkit: Callable[[str], Any]) -> Homes:
    return lambda release: toolkit(release).home


@pytest.mark.parametrize(
    ("architecture", "before", "since"),
    [("sm_100", "12.6", "12.8"), ("sm_120", "12.6", "12.8"), ("sm_103", "12.8", "12.9"), ("sm_121", "12.8", "12.9"), ("sm_110", "12.9", "13.0"), ("sm_89", "", "11.8"), ("sm_90", "", "11.8")],
)  # fmt: skip
def test_ptxas_knows_an_architecture_from_the_release_that_is_named(
    architecture: str, before: str, since: str, home: Homes
) -> None:
    assert re.search(
        rf"{architecture}\b[^.]*?(came )?with (CUDA )?{re.escape(since)}", CAUSES["triton-ptxas-old"].remedy
    )
    assert ask_tool("ptxas", home(since), {"source": "", "arch": architecture})[0]
    if before:
        built, said = ask_tool("ptxas", home(before), {"source": "", "arch": architecture})
        assert not built
        assert f"Value '{architecture}' is not defined for option 'gpu-name'" in said


def test_cuda_13_has_nothing_below_7_5(home: Homes) -> None:
    assert "CUDA 13 has nothing below 7.5" in CAUSES["no-kernel-image"].cause
    assert not ask_tool("ptxas", home("13.0"), {"source": "", "arch": "sm_70"})[0]
    assert ask_tool("ptxas", home("13.0"), {"source": "", "arch": "sm_75"})[0]
    assert ask_tool("ptxas", home("12.9"), {"source": "", "arch": "sm_70"})[0]


@pytest.mark.parametrize(
    "release",
    [
        "11.8", "12.0", "12.4", "12.9", "13.0",
        *(pytest.param(release, marks=pytest.mark.slow) for release in ("12.6", "12.8", "13.3", "13.4")),
    ],
)  # fmt: skip
def test_the_newest_gcc_is_that_of_the_header(release: str, home: Homes) -> None:
    header = home(release) / "include/crt/host_config.h"
    newest = re.search(r"__GNUC__ > (\d+)", header.read_text())
    named = {since: gcc for gcc, since in re.findall(r"(\d\d) by (?:CUDA )?(\d\d\.\d)", CAUSES["host-headers"].cause)}
    assert len(named) == 6
    latest = max((since for since in named if _order(since) <= _order(release)), key=_order)
    assert newest is not None
    assert named[latest] == newest[1]


def _order(release: str) -> list[int]:
    return [int(part) for part in release.split(".")]


def test_shared_memory_of_a_block() -> None:
    limits = tomllib.loads((Path(harness.causes.__file__).parent / "limits.toml").read_text("utf-8"))
    blocks = {name: each["block"] for name, each in found(limits) if "." in name}
    text = CAUSES["triton-shared-memory"].cause
    assert "64 KiB on 7.5, 99 KiB on 8.6, 8.9 and 12.x, 163 on 8.0, 227 on 9.0 and 10.0" in text
    said = {"7.5": 64, "8.6": 99, "8.9": 99, "12.0": 99, "12.1": 99, "8.0": 163, "9.0": 227, "10.0": 227}
    assert {name: blocks[name] for name in said} == said


def found(table: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Tables with a `block`, at any depth."""
    for name, each in table.items():
        if isinstance(each, dict):
            if "block" in each:
                yield name, each
            yield from found(each)


@pytest.mark.slow
@pytest.mark.parametrize(("release", "builds"), [("12.5", True), ("12.6", False), ("12.8", True)])
def test_only_nvrtc_12_6_makes_wrong_debug_information(release: str, builds: bool, home: Homes) -> None:
    """cccl#2440: it is not about run-time type information."""
    program = {
        "source": '#include <cuda/atomic>\nextern "C" __global__ void k(int *p) { cuda::atomic_ref<int, cuda::thread_scope_block> a(*p); a.fetch_add(1); }',
        "options": "--device-debug -std=c++17",
    }
    ((built, said),) = ask_nvrtc(home(release), {"k": program}).values()
    assert built is builds, said
    if not builds:
        # NVRTC's log has the summary only; what its check found goes to the standard error, which a record's log has.
        assert said == "error: Broken module found, compilation aborted!"
        log = f"inlinable function call in a function with debug info must have a !dbg location\n{said}\n"
        record = made("Broken module found, compilation aborted!", toolkit=release, log=log)
        # What `try` and `run` show below the matrix is the same.
        kept = KeptRecords()
        kept.append(record)  # type: ignore[arg-type]
        for matches in (explain_log(log).matches, causes_of(record), causes_of(kept[0])):
            assert [match.cause.name for match in matches] == ["nvrtc-debug-module"]


def test_a_runtime_function_in_a_kernel_is_no_kernel_that_launches_one(home: Homes) -> None:
    """cccl#2752."""
    program = {
        "source": "__global__ void k(char *p) { p[0] = cudaGetErrorString(cudaSuccess)[0]; }",
        "arch": "sm_90",
        "options": "-cubin",
    }
    built, said = ask_tool("nvcc", home("13.0"), program)
    assert not built
    assert [match.cause.name for match in explain_log(said).matches] == ["device-runtime-function"]
    record = made(
        "ptxas: Unresolved extern function '__cudaCDP2GetErrorString'", stage="assemble", backend="nvcc", toolkit="13.0"
    )
    assert [match.cause.name for match in causes_of(record)] == ["device-runtime-function"]


@pytest.mark.parametrize("backend", ["numba", "numba-cuda"])
@pytest.mark.parametrize(
    "said",
    ["ptxas: Unresolved extern function 'missing'", "nvlink: Undefined reference to 'missing' in '<cudapy-ptx>'"],
)
def test_an_undefined_function_in_numba_needs_no_nvcc(backend: str, said: str) -> None:
    for stage in ("assemble", "link"):
        (match,) = causes_of(made(said, stage=stage, backend=backend))
        assert match.cause.name == "numba-unresolved"
        assert "nvcc -dc" not in match.cause.remedy


def test_an_archive_without_a_member_is_taken_by_nvlink_of_cuda_13(home: Homes, tmp_path: Path) -> None:
    """glibc leaves such archives in the place of librt and others; nvlink of CUDA 11 does not open them."""
    (tmp_path / "librt.a").write_bytes(b"!<arch>\n")
    program = {
        "source": "__global__ void k() {}\nint main() {}",
        "options": f"-rdc=true {tmp_path}/librt.a",
        "arch": "sm_80",
    }
    assert ask_tool("nvcc-link", home("13.0"), program) == (True, "")


@pytest.mark.slow
def test_code_of_a_newer_release_is_named_by_nvlink(home: Homes, tmp_path: Path) -> None:
    source = "__device__ int f(int);\n__global__ void k(int *p) { *p = f(*p); }\nint main() {}"
    (tmp_path / "f.cu").write_text("__device__ int f(int x) { return x; }")
    subprocess.run(
        [home("13.5") / "bin/nvcc", "-arch=sm_80", "-dc", tmp_path / "f.cu", "-o", tmp_path / "f.o"], check=True
    )
    built, said = ask_tool("nvcc-link", home("13.0"), {"source": source, "options": f"-rdc=true {tmp_path}/f.o"})
    assert not built
    assert [match.cause.name for match in explain_log(said).matches] == ["lto-version"], said


HALVES = {
    "half": "__half2 f(__half2 a) { return __hadd2(a, a); }",
    "fma": "__half2 f(__half2 a) { return __hfma2(a, a, a); }",
    "operator": "__half f(__half a) { return a * a; }",
    "bfloat16": "__nv_bfloat162 f(__nv_bfloat16 a) { return __bfloat162bfloat162(a); }",
    "part": "__nv_bfloat16 f(__nv_bfloat162 a) { return __high2bfloat16(a); }",
}


@pytest.mark.parametrize(
    ("release", "arch", "refused"),
    [
        ("12.0", "sm_52", {"half", "fma", "operator", "bfloat16", "part"}),
        pytest.param("12.0", "sm_75", {"bfloat16", "part"}, marks=pytest.mark.slow),
        pytest.param("12.2", "sm_52", {"fma"}, marks=pytest.mark.slow),
        pytest.param("12.2", "sm_75", set(), marks=pytest.mark.slow),
    ],
)
def test_arithmetic_of_half_is_declared_from_12_2_on(release: str, arch: str, refused: set[str], home: Homes) -> None:
    assert "CUDA 12.2 declares them for all but __hfma2" in CAUSES["half-arithmetic"].cause
    head = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n__device__ "
    programs = {name: {"source": head + text, "arch": arch, "options": "-rdc=true"} for name, text in HALVES.items()}
    assert {name for name, (built, _) in ask_nvrtc(home(release), programs).items() if not built} == refused


@pytest.mark.parametrize(("release", "there"), [("12.6", False), ("12.8", True)])
def test_the_type_that_libcudacxx_misses(release: str, there: bool, home: Homes) -> None:
    assert "__nv_fp8_e8m0 came with CUDA 12.8" in CAUSES["cccl-fp8"].cause
    assert ("__nv_fp8_e8m0" in (home(release) / "include/cuda_fp8.h").read_text()) is there


def test_nvcc_takes_the_last_of_two_values(home: Homes) -> None:
    """Old releases say "redefinition of argument"; none of those can be had."""
    built, said = ask_tool("nvcc", home("13.0"), {"source": "__global__ void k() {}", "options": "-O2 -O3"})
    assert built, said


@pytest.mark.parametrize(
    ("release", "name", "header", "there"),
    [
        ("13.0", "cuda::proclaim_return_type", "cuda/functional", True),
        ("13.0", "cuda::std::identity", "cuda/std/functional", True),
        ("13.0", "cuda::make_counting_iterator", "cuda/iterator", False),
        ("13.5", "cuda::make_counting_iterator", "cuda/iterator", True),
    ],
)
def test_the_header_of_a_name_of_libcudacxx(release: str, name: str, header: str, there: bool, home: Homes) -> None:
    assert name in CAUSES["libcudacxx-newer"].cause
    using = f"using {name};\n"
    sources = {"without": f"#include <cuda/std/cstdint>\n{using}", "with": f"#include <{header}>\n{using}"}
    said = ask_nvrtc(home(release), {key: {"source": source} for key, source in sources.items()})
    assert [built for built, _ in said.values()] == [False, there]
    assert [match.cause.name for match in explain_log(said["without"][1]).matches] == ["libcudacxx-newer"]


def test_cuda_takes_a_compiler_without_win64_for_one_of_32_bits(home: Homes) -> None:
    header = (home("13.0") / "include/sm_32_intrinsics.hpp").read_text()
    where = header.index("#define __LDG_PTR")
    condition, wide, other = (
        header[:where].splitlines()[-1],
        header[where:].splitlines()[0],
        header[where:].splitlines()[2],
    )
    assert "defined(_MSC_VER) && defined(_WIN64)" in condition
    assert (wide.split()[-1], other.split()[-1]) == ('"l"', '"r"')
    assert "_WIN64" in CAUSES["compiler-32-bit"].cause
