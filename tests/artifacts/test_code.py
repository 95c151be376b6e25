"""Tensor-core instructions that ptxas generates from PTX, with nvdisasm's names.

The names come from nvdisasm 12.4 (sm_70, sm_72) and 13.5 (the others), run on the same programs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.artifacts import read_cubin, read_ptx
from harness.toolkits import Installed

HEAD = """\
.version {isa}
.target {target}
.address_size 64
"""
KERNEL = """\
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .f64 %g<4>; .reg .b64 %d<4>; .reg .pred %p<2>;
    ld.param.u64 %d1, [out];
    ld.global.u64 %d2, [%d1]; ld.global.u64 %d3, [%d1+8];
    ld.global.u32 %r1, [%d1+16]; ld.global.u32 %r2, [%d1+20]; ld.global.u32 %r3, [%d1+24]; ld.global.u32 %r4, [%d1+28];
    ld.global.f32 %f1, [%d1+32]; ld.global.f64 %g1, [%d1+40];
    setp.ne.u32 %p1, %r1, 0;
    {body}
    st.global.u32 [%d1], %r10; st.global.f32 [%d1+4], %f10; st.global.f64 [%d1+8], %g2;
    ret;
}}
"""
A8 = "{%r1,%r2,%r3,%r4,%r1,%r2,%r3,%r4}"
F4, R4, C4 = "{%f10,%f11,%f12,%f13}", "{%r10,%r11,%r12,%r13}", "{%f1,%f1,%f1,%f1}"
WMMA = f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {{%f10,%f11,%f12,%f13,%f14,%f15,%f16,%f17}}, {A8}, {A8}, {{%f1,%f1,%f1,%f1,%f1,%f1,%f1,%f1}};"
HALF = f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {F4}, {{%r1,%r2}}, {{%r3}}, {C4};"
SPARSE = f"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {F4}, {{%r1,%r2}}, {{%r3,%r4}}, {C4}, %r2, 0;"
INT8 = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r10,%r11}, {%r1}, {%r2}, {%r3,%r4};"
BITS = "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r10,%r11}, {%r1}, {%r2}, {%r3,%r4};"
DOUBLE = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g2,%g3}, {%g1}, {%g1}, {%g1,%g1};"
FP8 = f"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {F4}, {{%r1,%r2,%r3,%r4}}, {{%r3,%r4}}, {C4};"
FP4 = f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 {F4}, {{%r1,%r2,%r3,%r4}}, {{%r3,%r4}}, {C4}, {{%r1}}, {{0,0}}, {{%r2}}, {{0,0}};"


def group(shape: str, result: str, scales: str) -> str:
    return f"wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.{shape} {result}, %d2, %d3, {scales};"


def tcgen05(kind: str, more: str = "") -> str:
    return f"tcgen05.mma.cta_group::1.kind::{kind} [%r1], %d2, %d3, %r2,{more} %p1;"


CELLS = [
    ("12.4", "sm_60", "6.3", "add.u32 %r10, %r1, %r2;", "", ""),
    ("12.4", "sm_70", "6.3", WMMA, "HMMA", "wmma.mma"), ("12.4", "sm_72", "6.3", WMMA, "HMMA", "wmma.mma"),
    ("12.9", "sm_75", "6.5", WMMA, "HMMA", "wmma.mma"), ("12.9", "sm_75", "6.5", INT8, "IMMA", "mma"),
    ("12.9", "sm_75", "7.0", BITS, "BMMA", "mma"), ("12.9", "sm_80", "7.1", SPARSE, "HMMA", "mma"),
    ("12.9", "sm_80", "7.1", DOUBLE, "DMMA", "mma"), ("12.9", "sm_89", "8.4", FP8, "QMMA", "mma"),
    ("12.9", "sm_90", "8.4", FP8, "HMMA", "mma"), ("12.9", "sm_90", "8.0", BITS, "BMMA", "mma"),
    ("12.9", "sm_90", "8.0", "@%p1 add.u32 %r10, %r1, %r2; // mma.sync", "", ""),
    ("12.9", "sm_90a", "8.0", group("m64n8k16.f32.f16.f16", F4, "1, 1, 1, 0, 0"), "HGMMA", "wgmma.mma_async"),
    ("12.9", "sm_90a", "8.0", group("m64n8k32.s32.s8.s8", R4, "1"), "IGMMA", "wgmma.mma_async"),
    ("12.9", "sm_90a", "8.0", group("m64n8k256.s32.b1.b1.and.popc", R4, "1"), "BGMMA", "wgmma.mma_async"),
    ("12.9", "sm_90a", "8.0", group("m64n8k32.f32.e4m3.e5m2", F4, "1, 1, 1"), "QGMMA", "wgmma.mma_async"),
    ("13.5", "sm_100", "8.6", BITS, "IMMA", "mma"), ("13.5", "sm_100", "8.6", DOUBLE, "DMMA", "mma"),
    ("13.5", "sm_100a", "8.8", tcgen05("f16"), "UTCxMMA", "tcgen05.mma"),
    ("13.5", "sm_100a", "8.8", tcgen05("i8"), "UTCxMMA", "tcgen05.mma"),
    ("13.5", "sm_103a", "8.8", tcgen05("mxf4nvf4.block_scale.scale_vec::4X", " [%r3], [%r4],"), "UTCxMMA", "tcgen05.mma"),
    ("13.5", "sm_120", "8.7", FP8, "QMMA", "mma"), ("13.5", "sm_120a", "8.7", FP4, "OMMA", "mma"),
]  # fmt: skip


@pytest.mark.parametrize(("release", "target", "isa", "body", "machine", "virtual"), CELLS)
def test_instructions_for_tensor_cores_are_named(
    release: str, target: str, isa: str, body: str, machine: str, virtual: str,
    toolkit: Callable[[str], Installed], tmp_path: Path,
) -> None:  # fmt: skip
    text = (HEAD + KERNEL).format(isa=isa, target=target, body=body)
    (kernel,) = read_ptx(text).kernels
    assert kernel.tensor_cores == virtual
    (kernel,) = read_cubin(assemble(toolkit(release), target, text, tmp_path)).kernels
    assert kernel.tensor_cores == machine


def assemble(tools: Installed, target: str, text: str, folder: Path, *options: str) -> bytes:
    (folder / "k.ptx").write_text(text)
    made = folder / "k.cubin"
    subprocess.run([tools.home / "bin" / "ptxas", "-arch", target, *options, folder / "k.ptx", "-o", made], check=True)
    return made.read_bytes()


FUNCTION = f".visible .func multiply()\n{{\n .reg .b32 %r<9>; .reg .f32 %f<20>;\n {HALF}\n ret;\n}}\n"


def test_a_kernel_that_may_call_a_function_with_some_is_not_known(
    toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    alone = (HEAD + KERNEL).format(isa="7.1", target="sm_80", body="bar.sync 0;")
    head, kernel = (part.format(isa="7.1", target="sm_80", body="call multiply;") for part in (HEAD, KERNEL))
    text = head + FUNCTION + kernel
    assert [kernel.tensor_cores for kernel in read_ptx(text).kernels] == [None]
    tools = toolkit("12.9")
    for content, options, expected in ((alone, (), ""), (alone, ("-c",), None), (text, ("-c",), None)):
        made = read_cubin(assemble(tools, "sm_80", content, tmp_path, *options))
        assert [kernel.tensor_cores for kernel in made.kernels] == [expected]


@pytest.mark.parametrize(
    "text",
    ["/*" * 100_000, "//" * 100_000 + " mma.", "{" * 200_000 + "mma.", ";@" * 100_000 + "mma.", " " * 200_000 + "mma."],
)
def test_long_texts_are_read_in_time_that_grows_with_them(text: str) -> None:
    (kernel,) = read_ptx(f".target sm_80\n.entry k() {{\n mma.sync.x;\n{text}\n}}\n").kernels[:1] or [None]
    assert kernel is None or kernel.tensor_cores in ("mma", "")
