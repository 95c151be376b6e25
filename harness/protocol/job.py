"""What is asked of a compiler for one cell; the same however and wherever the cell runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from harness.protocol.message import Message, Scalar


class Options(TypedDict, total=False):
    """A case's options for one cell, as ``[[options]]`` has them (`harness.cases.keys.OPTIONS` says what each means)."""

    arch: str
    assembler: str
    compile_for: str
    linker: str
    std: str
    rdc: bool
    debug: bool
    lineinfo: bool
    fastmath: bool
    cache: bool
    depth: str
    declarations: str
    functions: list[str]
    enable_cooperative_groups: bool
    every_target: bool
    toolkit_first: bool
    toolkit_headers: bool
    flags: list[str]
    ptxas: list[str]


def header_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A case's options as far as a precompiled header depends on them (`harness.nvidia.pch_store.for_header`): nothing of who names the architecture, or asks for relocatable code."""
    others = {key: value for key, value in options.items() if key not in ("arch", "rdc", "enable_cooperative_groups")}
    return {**others, "rdc": bool(options.get("rdc") or options.get("enable_cooperative_groups"))}


def made_for(options: Mapping[str, Any], target: str) -> str:
    """What a compiler makes code for: the target, unless a case says for what else, or that another toolkit's tools finish it."""
    apart = options.keys() & {"assembler", "linker"}
    return options.get("compile_for") or (target.replace("sm_", "compute_") if apart else target)


@dataclass
class ArgumentSpec(Message):
    """One argument of a launch: an array of a shape, or a number (then there is no shape)."""

    name: str
    type: str
    shape: list[int] | None
    fill: str | float
    seed: int
    value: int | float | None


@dataclass
class CheckSpec(Message):
    """How results are checked: a Python file with a function of the kernel's name, and tolerances."""

    reference: str
    rtol: float
    atol: float


@dataclass
class LaunchSpec(Message):
    """How one kernel is launched on a real device; grid and block in three dimensions, `shared` in bytes."""

    kernel: str
    grid: list[int]
    block: list[int]
    shared: int
    opt_in: bool
    cooperative: bool
    arguments: list[ArgumentSpec]
    verify: CheckSpec | None


@dataclass
class Tools(Message):
    """Another toolkit, of which one tool takes part.

    Parameters
    ----------
    release : str
        The CUDA release.
    home : Path
        Its folder, laid out as a CUDA_HOME.
    """

    release: str
    home: Path


@dataclass
class CellJob(Message):
    """One cell, as a worker's child gets it; the same for every run of the cell.

    Parameters
    ----------
    cell : str
        Id of the cell.
    source : Path
        The program, ``kernel.cu`` or ``kernel.py``.
    entries : dict
        Kernel names and their signatures; empty accepts whatever the program defines.
    definitions : dict
        Macros, or module constants.
    target : str
        ``sm_80`` or ``compute_80``.
    options : Options
        The case's options for this cell.
    include : list of str
        Include directories of the toolkit, then those that were asked for.
    launches : list of LaunchSpec
        How the kernels are launched on a real device; empty without one.
    together : list of Path
        Further files of the same program, each a translation unit.
    assembler, linker : Tools or None
        Where ptxas and nvJitLink come from, if from another toolkit than the compiler.
    """

    cell: str
    source: Path
    entries: dict[str, str]
    definitions: dict[str, Scalar]
    target: str
    options: Options
    include: list[str]
    launches: list[LaunchSpec] = field(default_factory=list)
    together: list[Path] = field(default_factory=list)
    assembler: Tools | None = None
    linker: Tools | None = None
