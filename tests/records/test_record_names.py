"""Conditions read the same names of a record as of its cell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from packaging.version import InvalidVersion
from record_builders import cell, plan, record

from harness.model import Cell, Toolchain, ToolkitRef, Variant
from harness.model.cell import host_named
from harness.model.condition import HOST_VERSIONS, NAMES, Condition, Version
from harness.records.record_names import facts_of

PACKAGES = {"cuda-core": "1.2.2", "cupy-cuda12x": "13.6.0", "cupy": "13.6.0", "numba": "0.61.0", "numba-cuda": "0.10.0", "numba-cuda-mlir": "0.6.0", "numpy": "1.26.4", "python": "3.11.9",
            "torch": "2.5.1+cu124", "ml-dtypes": "0.5.0", "triton": "3.5.0", "cute-dsl": "4.6.1", "warp": "1.9.1", "cutile": "1.7.0"}  # fmt: skip


def made(toolkit: ToolkitRef, target: str = "sm_80", *, variant: Variant | None = None, **more: Any) -> Cell:
    toolchain = Toolchain(**{"backend": "nvrtc", "library": "", "toolkit": toolkit, "packages": PACKAGES, **more})
    plain = cell(target=target)
    return replace(plain, toolchain=toolchain, variant=variant or plain.variant)


RELEASE = ToolkitRef(release="12.4", headers="12.4")
CELLS = {
    "plain": made(RELEASE),
    "virtual": made(RELEASE, "compute_90"),
    "suffix": made(RELEASE, "sm_90a"),
    "library": made(RELEASE, backend="cupy-nvrtc", library="13.6.0"),
    "wheels": made(RELEASE, backend="numba-cuda", library="0.10.0+wheels"),
    "other headers": made(ToolkitRef(release="13.5", headers="13.0")),
    "local": made(ToolkitRef(release="12.4", headers="12.4", home="/usr/local/cuda", local=True)),
    "local with other headers": made(ToolkitRef(release="12.4", headers="12.6", home="/usr/local/cuda", local=True)),
    "bundled": made(ToolkitRef(release="12.8", headers="12.8", bundled=True), backend="triton", library="3.5.0"),
    "device": made(RELEASE, "sm_90", device="NVIDIA H200"),
}


@pytest.mark.parametrize("asked", CELLS.values(), ids=CELLS)
def test_a_record_has_the_facts_of_its_cell(asked: Cell) -> None:
    facts = asked.facts()
    found = facts_of({**record(asked), "device": {"virtual": not asked.toolchain.device}})
    assert {name: found.get(name) for name in NAMES} == {name: facts.get(name) for name in NAMES}


def test_header_libraries_stand_among_the_parameters() -> None:
    asked = made(RELEASE, variant=Variant(labels={"cutlass": "3.5.1"}, definitions={}, libraries={"cutlass": "3.5.1"}))
    assert asked.facts()["cutlass"] == Version("3.5.1")
    assert facts_of(record(asked))["cutlass"] == "3.5.1"


def test_every_name_of_conditions_is_a_fact() -> None:
    facts = made(RELEASE, backend="cupy-nvrtc", library="13.6.0").facts()
    assert set(facts) == set(NAMES)
    for name, kind in NAMES.items():
        # Only what nvcc compiles has a host compiler.
        assert facts[name] is None if name in HOST_VERSIONS else isinstance(facts[name], kind), name


def test_a_host_compiler_is_known_by_its_version_and_else_by_its_name() -> None:
    nvcc = made(RELEASE, backend="nvcc", library="")
    host = host_named("gcc-13", "gcc 13.3.0, glibc 2.39")
    asked = replace(nvcc, toolchain=replace(nvcc.toolchain, host=host))
    assert facts_of(record(asked))["gcc"] == asked.facts()["gcc"] == Version("13.3.0")
    assert facts_of(record(asked))["glibc"] == Version("2.39")
    (planned,) = plan(asked)["cells"]
    assert facts_of(planned)["gcc"] == Version("13")
    assert not facts_of({**planned, "cell": planned["cell"] + " on NVIDIA H100"})["clang"]
    assert facts_of({**planned, "cell": planned["cell"] + " on NVIDIA H100"})["device"] is True


def test_no_package_takes_the_place_of_a_fact() -> None:
    facts = made(RELEASE, packages={"toolkit": "1.0", "cc": "1.0", "cupy": "14.0"}).facts()
    assert (facts["toolkit"], facts["cc"], facts["cupy"]) == (Version("12.4"), Version("8.0"), Version("14.0"))


@pytest.mark.parametrize("condition", ['cupy < "13.1"', 'library >= "1"', 'not cupy >= "1"'])
def test_what_is_no_version_in_a_file_fulfils_no_comparison(condition: str) -> None:
    asked = made(RELEASE, backend="cupy-nvrtc", library="head", packages={"cupy": "head"})
    with pytest.raises(InvalidVersion):
        asked.facts()
    assert Condition.parse(condition)(facts_of(record(asked))) is condition.startswith("not")
