"""Fatbins of real tools: the reader returns their entries."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import NothingToRun
from harness.model import Target
from harness.model.compatibility import Way
from harness.model.gpus import parse_gpus
from harness.wheels.binary import read_library
from harness.wheels.coverage import coverage
from harness.wheels.entries import Kind, Library, Packing
from harness.wheels.gate import Requirement, missing
from harness.wheels.kernels import template_of, with_kernels
from harness.wheels.sources import needs_code, read_source

from .conftest import Tools

pytestmark = pytest.mark.compilers
KERNEL = "_ZN5flash16flash_fwd_kernelILi1EEEvPi"
IMAGES = [
    ("elf", "sm_80"),
    ("ptx", "sm_80"),
    ("elf", "sm_90a"),
    ("elf", "sm_100f"),
    ("elf", "sm_103a"),
    ("ptx", "sm_120f"),
]


def listed(library: Library) -> list[tuple[str, str]]:
    return [(entry.kind.value, str(entry.target)) for unit in library.units for entry in unit.entries]


@pytest.mark.parametrize(
    ("mode", "packing"),
    [("none", Packing.NONE), ("size", Packing.ZSTD), ("balance", Packing.ZSTD), ("speed", Packing.LZ4)],
)
def test_targets_versions_and_kernels(tools: Tools, mode: str, packing: Packing) -> None:
    path = tools.fatbin("k.fatbin", *IMAGES, mode=mode, ident="k.cu")
    library = read_library(path, "k.fatbin")
    assert listed(library) == [
        ("sass", "sm_80"), ("ptx", "compute_80"), ("sass", "sm_90a"), ("sass", "sm_100f"), ("sass", "sm_103a"), ("ptx", "compute_120f"),
    ]  # fmt: skip
    entries = library.units[0].entries
    assert {entry.packing for entry in entries} == {packing}
    assert {entry.name for entry in entries} == {"k.cu"}
    assert {entry.isa for entry in entries if entry.kind is Kind.PTX} == {(9, 0)}
    named = with_kernels(library, path, library.units)
    assert named.kernels == {KERNEL: {entry.target for entry in entries}}


def test_cubins_and_ptx_by_themselves(tools: Tools) -> None:
    cubin, ptx = tools.folder / tools.cubin("sm_90a"), tools.folder / tools.ptx("sm_120f")
    assert listed(read_library(cubin, cubin.name)) == [("sass", "sm_90a")]
    assert listed(read_library(ptx, ptx.name)) == [("ptx", "compute_120f")]


def test_a_fatbin_without_functions_and_variables_is_no_gap(tools: Tools) -> None:
    for name, text in {"host.cu": "void host() {}\n", "variable.cu": "__device__ int variable = 1;\n"}.items():
        (tools.folder / name).write_text(text)
        tools.run("nvcc", "-c", "-Xcompiler=-fPIC", "-gencode=arch=compute_75,code=[sm_75,compute_75]", name)
    kernel = tools.objects("kernel.o", "-c", "-Xcompiler=-fPIC", "-arch=sm_90").name
    for name, objects in {"mixed.so": ["host.o", kernel], "empty.so": ["host.o"], "used.so": ["variable.o"]}.items():
        subprocess.run(["gcc", "-shared", "-nostdlib", *objects, "-o", name], cwd=tools.folder, check=True)
    assert [unit.empty for unit in read_library(tools.folder / "mixed.so", "mixed.so").units] == [False, False]
    for name in ("host.cu", "variable.cu", "host.o", "variable.o", kernel):
        (tools.folder / name).unlink()
    found = read_source(tools.folder)
    assert found.without_code == ("empty.so",)
    assert [(library.name, [unit.empty for unit in library.units]) for library in found.libraries] == [
        ("mixed.so", [True, False]), ("used.so", [False]),
    ]  # fmt: skip
    required = Requirement(tuple(parse_gpus("H100")))
    assert [
        (each.library, each.why.partition(" ")[0])
        for each in missing([found], replace(required, complete=True, native=True))
    ] == [("used.so", "PTX")]
    with pytest.raises(
        NothingToRun, match=r"empty\.so has no device code of NVIDIA GPUs: fatbins without kernels in empty\.so"
    ):
        needs_code(read_source(tools.folder / "empty.so", "empty.so"))


def test_relocatable_objects_archives_and_what_is_linked_of_them(tools: Tools) -> None:
    both = "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    plain = read_library(tools.objects("plain.o", "-c", both), "plain.o")
    assert not plain.relocatable and listed(plain) == [("sass", "sm_90"), ("ptx", "compute_90")]
    path = tools.objects("part.o", "-c", "-rdc=true", "-Xcompiler=-fPIC", both)
    part = read_library(path, "part.o")
    assert part.relocatable and listed(part) == [("sass", "sm_90"), ("ptx", "compute_90")]
    subprocess.run(["ar", "rc", "lib.a", "part.o", "plain.o"], cwd=tools.folder, check=True)
    archive = read_library(tools.folder / "lib.a", "lib.a")
    assert [(unit.member, unit.section) for unit in archive.units] == [
        ("part.o", "__nv_relfatbin"),
        ("plain.o", ".nv_fatbin"),
    ]
    assert len(archive.loaded) == 2
    tools.run("nvcc", "-dlink", "-Xcompiler=-fPIC", both, "part.o", "-o", "link.o")
    subprocess.run(["gcc", "-shared", "-nostdlib", "part.o", "link.o", "-o", "linked.so"], cwd=tools.folder, check=True)
    linked = read_library(tools.folder / "linked.so", "linked.so")
    assert [(unit.section, unit.linked) for unit in linked.units] == [("__nv_relfatbin", False), (".nv_fatbin", True)]
    assert linked.loaded == linked.of(".nv_fatbin")
    # The linked code has no PTX: the driver links the relocatable PTX again.
    assert [relation.way for relation in coverage(linked, parse_gpus("sm_80,sm_90,sm_120"))] == [
        Way.NONE,
        Way.NATIVE,
        Way.JIT,
    ]


def test_code_for_link_time_optimization_is_no_ptx(tools: Tools) -> None:
    path = tools.objects(
        "lto.o", "-c", "-rdc=true", "-gencode=arch=compute_90,code=lto_90", "-gencode=arch=compute_80,code=sm_80"
    )
    assert listed(read_library(path, "lto.o")) == [("lto", "compute_90"), ("sass", "sm_80")]


def test_fatbins_outside_of_their_section_are_found(tools: Tools, tmp_path: Path) -> None:
    tools.fatbin("k.fatbin", ("elf", "sm_80"), mode="size")
    (tools.folder / "has.s").write_text(
        '.section .rodata\n.align 16\n.byte 1, 2, 3, 4, 5, 6, 7, 8\n.incbin "k.fatbin"\n.section .note.GNU-stack\n'
    )
    subprocess.run(["gcc", "-shared", "-nostdlib", "has.s", "-o", "has.so"], cwd=tools.folder, check=True)
    library = read_library(tools.folder / "has.so", "has.so")
    assert listed(library) == [("sass", "sm_80")]
    assert [unit.section for unit in library.loaded] == [".rodata"] and library.further == ()


@pytest.mark.slow
def test_cuobjdump_lists_the_same(tools: Tools, venv: Callable[..., str]) -> None:
    home = Path(venv("nvidia-cuda-cuobjdump==13.5.37")).parents[1]
    (cuobjdump,) = home.glob("lib/python3*/site-packages/nvidia/cu13/bin/cuobjdump")
    path = tools.objects("some.so", "-shared", "-Xcompiler=-fPIC", "--cudart=none", *(f"-gencode=arch=compute_{cc},code={code}" for cc in ("75", "90a", "120f") for code in (f"sm_{cc}", f"compute_{cc}")))  # fmt: skip
    done = subprocess.run([cuobjdump, "-all", "-lelf", "-lptx", path], capture_output=True, text=True, check=True)
    theirs = [line.rsplit(".", 2)[1] for line in done.stdout.splitlines() if "file" in line]
    ours = [entry.target.real for unit in read_library(path, "some.so").units for entry in unit.entries]
    # cuobjdump 13.5 omits the f of family-specific SASS.
    assert [str(target).rstrip("f") for target in ours] == [name.rstrip("f") for name in theirs]
    assert Target.parse("sm_120f") in ours


@pytest.mark.parametrize(
    ("name", "template"),
    [
        (KERNEL, "flash::flash_fwd_kernel"),
        ("_Z5scaleIfEvPT_", "scale"),
        ("_ZN12_GLOBAL__N_14copyIfEEvPT_", "(anonymous)::copy"),
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_13AUnaryFunctorEEEviT0_",
            "at::native::vectorized_elementwise_kernel",
        ),
        ("_ZNSt4copyEv", "std::copy"),
        ("_ZL4k", "_ZL4k"),
        ("_Z999x", "_Z999x"),
        ("triton_mm", "triton_mm"),
    ],
)
def test_templates(name: str, template: str) -> None:
    assert template_of(name) == template


def test_many_cubins_of_one_package_are_one_library(tools: Tools) -> None:
    package = tools.folder / "site" / "package"
    package.mkdir(parents=True)
    for number in range(24):
        target = ("sm_90a", "sm_100a")[number % 2]
        (tools.folder / tools.cubin(target)).rename(package / f"{number}.cubin")
    found = read_source(tools.folder / "site", every_name=True)
    (library,) = found.libraries
    assert (library.name, len(library.units)) == ("package (24 files)", 24)
    assert library.kernels == {KERNEL: {Target.parse("sm_90a"), Target.parse("sm_100a")}}
    (package / "0.cubin").unlink()
    assert len(read_source(tools.folder / "site").libraries) == 23


def test_the_profiler_is_not_the_package(tools: Tools) -> None:
    wheel = tools.folder / "site"
    wheel.mkdir()
    (tools.folder / tools.cubin("sm_90")).rename(wheel / "libcupti.so.13")
    found = read_source(wheel)
    assert (found.libraries, found.profiler) == ((), ("libcupti.so.13",))
    with pytest.raises(NothingToRun, match=r"NVIDIA's profiler \(libcupti\.so\.13\) is not read"):
        needs_code(found)
    assert read_source(wheel / "libcupti.so.13").libraries  # if a user names it
