"""Cubins of real assemblers, compared with the output of ``ptxas -v``."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.artifacts import read_cubin
from harness.model import KernelResources, Target
from harness.toolkits import Installed

PLACES = [
    ("11.8", "sm_50", "6.0"), ("11.8", "sm_80", "7.0"), ("12.0", "sm_90", "7.8"), ("12.4", "sm_90a", "8.0"), ("12.4", "sm_75", "6.3"),
    ("12.9", "sm_100f", "8.8"), ("12.9", "sm_100", "8.6"), ("12.9", "sm_121", "8.8"), ("13.0", "sm_121a", "8.8"),
    ("13.0", "sm_90", "7.8"), ("13.5", "sm_80", "7.0"), ("13.5", "sm_110f", "9.0"), ("13.5", "sm_120a", "8.7"),
]  # fmt: skip

# `plain` needs nothing, `shared` 260 bytes of shared and 40 of parameters, `stack` an array that stays in memory.
PROGRAM = """\
.version {isa}
.target {target}
.address_size 64
.const .align 4 .b8 table[64];

.visible .entry plain() {{
    ret;
}}

.visible .entry shared(.param .u64 out, .param .align 8 .b8 more[32]) {{
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    .shared .align 4 .b8 buffer[260];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, buffer;
    shl.b32 %r3, %r1, 2;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    bar.sync 0;
    ld.shared.u32 %r4, [buffer+8];
    ld.const.u32 %r5, [table+4];
    add.u32 %r4, %r4, %r5;
    st.global.u32 [%rd1], %r4;
    ret;
}}

.visible .entry stack(.param .u64 out) {{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    .local .align 8 .b8 array[512];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    cvt.u64.u32 %rd2, %r1;
    mov.u64 %rd3, array;
    add.u64 %rd3, %rd3, %rd2;
    st.local.u32 [%rd3], %r1;
    ld.local.u32 %r2, [%rd3+16];
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""


def spilling(isa: str, target: str, values: int = 60) -> str:
    """Return a kernel with too many live values for few registers."""
    loads = "".join(f"    ld.volatile.global.u32 %r{n}, [%rd1+{4 * n}];\n" for n in range(values))
    stores = "".join(f"    st.volatile.global.u32 [%rd1+{4 * n}], %r{values - 1 - n};\n" for n in range(values))
    return (
        f".version {isa}\n.target {target}\n.address_size 64\n.visible .entry spills(.param .u64 out) {{\n"
        f"    .reg .b32 %r<{values}>;\n    .reg .b64 %rd<2>;\n    ld.param.u64 %rd1, [out];\n{loads}    bar.sync 0;\n{stores}    ret;\n}}\n"
    )


def assemble(toolkit: Installed, target: str, text: str, folder: Path, *options: str) -> tuple[bytes, str]:
    ptx, cubin = folder / "kernel.ptx", folder / "kernel.cubin"
    ptx.write_text(text)
    argv: list[str | Path] = [toolkit.home / "bin" / "ptxas", "-v", f"-arch={target}", *options, ptx, "-o", cubin]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return cubin.read_bytes(), done.stdout + done.stderr


def known(number: int | None) -> int:
    """Return a number that must exist."""
    assert number is not None
    return number


def printed(log: str) -> dict[str, dict[str, int]]:
    """Parse the output of ``ptxas -v`` by kernel; figures that it omits are missing."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        numbers = {"stack": r"(\d+) bytes stack frame", "stores": r"(\d+) bytes spill stores", "loads": r"(\d+) bytes spill loads",
                   "registers": r"Used (\d+) registers", "shared": r"(\d+) bytes smem", "const": r"(\d+) bytes cmem\[0\]",
                   "cumulative": r"(\d+) bytes cumulative stack size"}  # fmt: skip
        said = {name: re.search(pattern, part) for name, pattern in numbers.items()}
        found[part.split("'")[0]] = {name: int(match[1]) for name, match in said.items() if match}
    return found


def held_against(kernel: KernelResources, said: dict[str, int]) -> None:
    assert kernel.num_regs == said["registers"]
    assert kernel.shared_bytes == said.get("shared", 0)
    assert kernel.local_bytes == said["stack"]
    assert kernel.spill_bytes == said["stores"] + said["loads"]
    if "const" in said:
        assert kernel.const_bytes == said["const"]
    if "cumulative" in said:
        assert kernel.stack_bytes == said["cumulative"]


@pytest.mark.compilers
@pytest.mark.parametrize(("release", "target", "isa"), PLACES)
def test_a_cubin_says_what_its_assembler_said(
    release: str, target: str, isa: str, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    data, log = assemble(toolkit(release), target, PROGRAM.format(isa=isa, target=target), tmp_path)
    contents = read_cubin(data, log)
    read, kernels = contents.target, contents.kernels
    said = printed(log)
    assert read == Target.parse(target)
    assert sorted(kernel.name for kernel in kernels) == sorted(said) == ["plain", "shared", "stack"]
    for kernel in kernels:
        held_against(kernel, said[kernel.name])
    by_name = {kernel.name: kernel for kernel in kernels}
    assert by_name["shared"].shared_bytes == 260
    assert known(by_name["shared"].const_bytes) - known(by_name["plain"].const_bytes) == 40
    assert known(by_name["stack"].local_bytes) >= 512
    assert by_name["plain"].shared_bytes == by_name["plain"].local_bytes == by_name["plain"].spill_bytes == 0


@pytest.mark.compilers
@pytest.mark.parametrize(("release", "target", "isa"), PLACES[::3])
def test_spills_are_those_of_the_log(
    release: str, target: str, isa: str, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    data, log = assemble(toolkit(release), target, spilling(isa, target), tmp_path, "-maxrregcount=24")
    (kernel,) = read_cubin(data, log).kernels
    held_against(kernel, printed(log)["spills"])
    assert kernel.spill_bytes
    assert known(kernel.num_regs) <= 24
    (roomy,) = read_cubin(*assemble(toolkit(release), target, spilling(isa, target), tmp_path)).kernels
    assert (roomy.spill_bytes, roomy.local_bytes) == (0, 0)
    assert known(roomy.num_regs) > 60


@pytest.mark.compilers
def test_without_a_log_nothing_is_said_of_spills(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    data, _ = assemble(toolkit("12.4"), "sm_80", spilling("7.0", "sm_80"), tmp_path, "-maxrregcount=24")
    assert read_cubin(data).kernels[0].spill_bytes is None


@pytest.mark.compilers
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("release", ["12.4", "13.5"])
def test_a_relocatable_cubin_is_read_too(
    release: str, target: str, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    data, log = assemble(toolkit(release), target, PROGRAM.format(isa="7.8", target=target), tmp_path, "-c")
    contents = read_cubin(data, log)
    read, kernels = contents.target, contents.kernels
    assert read == Target.parse(target)
    assert {kernel.name: kernel.shared_bytes for kernel in kernels} == {"plain": 0, "shared": 260, "stack": 0}


def read_or_refused(data: bytes) -> None:
    try:
        contents = read_cubin(data)
    except ValueError:
        return
    assert str(contents.target).startswith("sm_")
    assert all(isinstance(kernel, KernelResources) for kernel in contents.kernels)


@pytest.fixture(scope="module")
def cubin(toolkit: Callable[[str], Installed], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return assemble(
        toolkit("12.4"), "sm_80", PROGRAM.format(isa="7.0", target="sm_80"), tmp_path_factory.mktemp("ptx")
    )[0]


@pytest.mark.compilers
@given(
    places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8),
    keep=st.floats(0.01, 1),
)
def test_a_damaged_cubin_is_read_or_refused(cubin: bytes, places: list[tuple[float, int]], keep: float) -> None:
    data = bytearray(cubin)
    for place, value in places:
        data[int(place * len(data))] = value
    read_or_refused(bytes(data[: int(keep * len(data))]))


@pytest.mark.compilers
@given(places=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 255)), min_size=1, max_size=6))
def test_a_cubin_with_a_damaged_header_is_read_or_refused(cubin: bytes, places: list[tuple[int, int]]) -> None:
    data = bytearray(cubin)
    for place, value in places:
        data[place] = value
    read_or_refused(bytes(data))


@given(st.one_of(st.binary(max_size=300), st.binary(max_size=300).map(b"\x7fELF\x02\x01\x01".__add__)))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a cubin"):
        read_cubin(data)


def test_a_program_of_this_machine_is_no_cubin() -> None:
    with pytest.raises(ValueError, match="not a cubin: an ELF file for another machine"):
        read_cubin(Path("/proc/self/exe").read_bytes())
