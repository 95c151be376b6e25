"""Occupancy of a built kernel: its resources, the multiprocessor's limits, and the blocks that fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.model import Target
from harness.tables import read_table

STATIC_SHARED = 48 * 1024
"""Bytes of static shared memory that a kernel may have on every compute capability."""

MAX_REGISTERS = 255
CONSTANT = 64 * 1024
"""Bytes of constant memory that a kernel may have on every compute capability."""

WARP = 32
BLOCK_THREADS = 1024
_REGISTERS = 65536
# A warp gets registers in units of 256. A block gets shared memory in units of 128 bytes (256 before 8.0). From 8.0 on, the system
# reserves 1 KiB of shared memory for each block.
_REGISTER_UNIT = 256


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a compute capability, per multiprocessor unless the name says block. Shared memory is in bytes."""

    capability: str
    registers: int
    block_registers: int
    shared: int
    block_shared: int
    threads: int
    blocks: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Occupancy:
    """The number of resident blocks of one size, and the limiting resource."""

    threads: int
    blocks: int
    percent: int
    limit: str


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Resources of a kernel compared with the limits.

    Parameters
    ----------
    kernel : str
        The kernel's name.
    registers, shared, spills : int or None
        Registers per thread, bytes of static shared memory, and bytes spilled. None if unknown.
    limits : Limits
        The limits of the compute capability.
    threads : int
        The largest block that the registers allow, in threads.
    dynamic : int
        Bytes of dynamic shared memory that a launch can add.
    occupancy : tuple of Occupancy
        The occupancy of blocks of 128, 256, 512 and 1024 threads, without dynamic shared memory.
    warnings : tuple of str
        Sentences about limits that prevent a launch or make it slow.
    """

    kernel: str
    registers: int | None
    shared: int | None
    spills: int | None
    limits: Limits
    threads: int
    dynamic: int
    occupancy: tuple[Occupancy, ...]
    warnings: tuple[str, ...]


CANNOT_LAUNCH = "cannot launch: "
"""The start of a note about kernels that cannot be launched."""


def launch_note(kernels: Iterable[tuple[str, int | None]], target: str) -> str:
    """Return a note about kernels with more static shared memory than a block can have; empty if there are none.

    Parameters
    ----------
    kernels : iterable of tuple
        Each kernel's name and its bytes of static shared memory.
    target : str
        ``sm_86``.
    """
    limits = limits_of(target)
    exceeded = [
        f"{name} has {shared} bytes of static shared memory"
        for name, shared in kernels
        if limits and (shared or 0) > limits.block_shared
    ]
    if not exceeded or limits is None:
        return ""
    return f"{CANNOT_LAUNCH}{'; '.join(exceeded)}; a block can have {limits.block_shared} on compute capability {limits.capability}"


@cache
def _table() -> Mapping[str, Any]:
    return read_table("causes/limits.toml")


def limits_of(target: str) -> Limits | None:
    """Return the limits of a target's compute capability; None if NVIDIA's tables lack it."""
    capability = Target.parse(target).capability
    entry = _table()["capability"].get(capability)
    if entry is None:
        return None
    return Limits(
        capability=capability,
        registers=_REGISTERS,
        block_registers=entry.get("block_registers", _REGISTERS),
        shared=entry["shared"] * 1024,
        block_shared=entry["block"] * 1024,
        threads=entry["threads"],
        blocks=entry["blocks"],
        source=_table()["older" if Target.parse(target).cc < 75 else "source"],
    )


def budget(kernel: Mapping[str, Any], target: str) -> Budget | None:
    """Return the budget of one kernel in a record's ``artifact.kernels``; None for a compute capability without published limits."""
    limits = limits_of(target)
    if limits is None:
        return None
    registers, shared, spills = (kernel.get(name) for name in ("num_regs", "shared_bytes", "spill_bytes"))
    largest = min(BLOCK_THREADS, limits.block_registers // _of_a_warp(registers) * WARP) if registers else BLOCK_THREADS
    return Budget(
        kernel=kernel["name"],
        registers=registers,
        shared=shared,
        spills=spills,
        limits=limits,
        threads=largest,
        dynamic=max(0, limits.block_shared - (shared or 0)),
        occupancy=tuple(
            _occupancy(limits, registers or 0, shared or 0, threads)
            for threads in (128, 256, 512, 1024)
            if threads <= largest
        ),
        warnings=tuple(_warnings(limits, registers, shared, spills, kernel.get("local_bytes"), largest)),
    )


def _warnings(
    limits: Limits, registers: int | None, shared: int | None, spills: int | None, local: int | None, largest: int
) -> list[str]:
    found = []
    if shared is not None and shared > limits.block_shared:
        found.append(
            f"{shared} bytes of shared memory are more than the {limits.block_shared} that a block can have: it cannot be launched"
        )
    elif shared is not None and shared > STATIC_SHARED:
        found.append(
            f"{shared} bytes of static shared memory are more than {STATIC_SHARED}: only architecture-specific targets of CUDA 13 may have that"
        )
    if registers is not None and registers >= MAX_REGISTERS:
        found.append(f"{MAX_REGISTERS} registers are all that a thread can have: look for spills")
    if largest < BLOCK_THREADS:
        found.append(f"its registers let a block have {largest} threads at most")
    if spills:
        found.append(f"{spills} bytes are spilled to local memory")
    elif local:
        found.append(f"{local} bytes of local memory a thread: arrays with computed indices, or spills")
    return found


def _of_a_warp(registers: int) -> int:
    """Return the number of registers that a warp occupies, rounded up as in hardware."""
    return -(-registers * WARP // _REGISTER_UNIT) * _REGISTER_UNIT


def _occupancy(limits: Limits, registers: int, shared: int, threads: int) -> Occupancy:
    warps = -(-threads // WARP)
    new = float(limits.capability) >= 8
    unit, system = (128, 1024) if new else (256, 0)
    taken = -(-(shared + system) // unit) * unit if shared + system else 0
    room = {"blocks": limits.blocks, "threads": limits.threads // (warps * WARP)}
    if registers:
        # Each of the four schedulers has a quarter of the registers, and a warp uses those of one scheduler.
        room["registers"] = limits.registers // 4 // _of_a_warp(registers) * 4 // warps
    if taken:
        room["shared memory"] = limits.shared // taken
    limit = min(room, key=lambda name: room[name])
    blocks = room[limit]
    return Occupancy(threads=threads, blocks=blocks, percent=100 * blocks * warps * WARP // limits.threads, limit=limit)
