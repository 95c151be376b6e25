"""Cubins: ELF files.

Their NVIDIA parts are laid out as LLVM's ``llvm/BinaryFormat/ELF.h`` (``EF_CUDA_*``) and the binary tools'
``cuobjdump --dump-resource-usage`` show them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from harness.artifacts.code import Code, read_code
from harness.artifacts.contents import Contents
from harness.artifacts.elf import ET_EXEC, STT_FUNC, Elf
from harness.model import KernelResources, Target

_EM_CUDA = 190
_ENTRY = 0x10  # STO_CUDA_ENTRY, in a symbol's st_other
_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x11, 0x12, 0x2F
_SIZED_VALUE = 4
_SYSTEM_SHARED = 1024  # what the system reserves in each block from sm_90 on, counted in .nv.shared.* of linked cubins


def read_cubin(data: bytes, log: str = "") -> Contents:
    """Target and kernels of a cubin.

    Parameters
    ----------
    data : bytes
        The cubin.
    log : str
        What ``ptxas -v`` printed of it, if it was asked: the only place that tells of spills.

    Raises
    ------
    ValueError
        When it is no cubin.
    """
    try:
        # CuPy takes the last byte of what NVRTC gives for a terminator and cuts it off.
        elf = Elf(data + b"\0")
        if elf.machine != _EM_CUDA:
            raise ValueError("an ELF file for another machine")
        target = _target(elf)
        kernels = tuple(_kernels(elf, target, _spills(log)))
    except (ValueError, struct.error) as error:
        raise ValueError(f"not a cubin: {error}") from None
    return Contents(
        target,
        tuple(kernel for kernel, _ in kernels),
        tuple(kernel.name for kernel, code in kernels if code and code.only_traps),
    )


def is_relocatable(data: bytes) -> bool:
    """Whether a cubin has still to be linked (ELF's ET_REL)."""
    return data[16:18] == b"\x01\x00"


def _target(elf: Elf) -> Target:
    number = (elf.flags >> 8) & 0xFF if elf.abi >= 8 else elf.flags & 0xFF
    suffix = "a" if elf.abi < 8 and elf.flags & 0x800 else ""
    note = elf.sections.get(".note.nv.tkinfo")
    if note is not None:
        # The newer ABI has no flag for the suffix; the note quotes the assembler's command line.
        named = re.search(rb"(?:sm|compute)_%d([af])\b" % number, note.data)
        suffix = named[1].decode() if named else suffix
    return Target(virtual=False, cc=number, suffix=suffix)


def _kernels(elf: Elf, target: Target, spills: dict[str, int]) -> Iterator[tuple[KernelResources, Code | None]]:
    values, codes, left = _info(elf), dict[str, Code](), elf.size
    reserved = _SYSTEM_SHARED if target.cc >= 90 and elf.type == ET_EXEC else 0
    for index, symbol in enumerate(elf.symbols()):
        if symbol.type != STT_FUNC or not symbol.other & _ENTRY:
            continue
        name = symbol.name
        shared = elf.sections.get(f".nv.shared.{name}")
        const = elf.sections.get(f".nv.constant0.{name}")
        text = elf.sections.get(f".text.{name}")
        if text is not None and name not in codes:
            # Sections of what a compiler wrote do not overlap; a hostile file could have the same code read for each of its symbols.
            left -= len(text.data)
            if left < 0:
                raise ValueError("the code of its kernels overlaps")
            codes[name] = read_code(text.data, target.cc)
        code = codes.get(name)
        resources = KernelResources(
            name=name,
            num_regs=values.get((index, _REGCOUNT)),
            shared_bytes=max(0, shared.size - reserved) if shared is not None else 0,
            local_bytes=values.get((index, _FRAME_SIZE)),
            stack_bytes=values.get((index, _MIN_STACK_SIZE)),
            const_bytes=const.size if const is not None else 0,
            spill_bytes=spills.get(name),
            instructions=code.instructions if code else None,
            opcodes=code.opcodes if code else None,
        )
        yield resources, code


def _info(elf: Elf) -> dict[tuple[int, int], int]:
    """Values of ``.nv.info`` by symbol and attribute."""
    section = elf.sections.get(".nv.info")
    data: bytes | memoryview = section.data if section is not None else b""
    values, place = {}, 0
    while place + 4 <= len(data):
        kind, attribute, length = struct.unpack_from("<BBH", data, place)
        place += 4
        if kind == _SIZED_VALUE:
            if length == 8:
                symbol, value = struct.unpack_from("<II", data, place)
                values[symbol, attribute] = value
            place += length
    return values


def _spills(log: str) -> dict[str, int]:
    found = re.finditer(
        r"Function properties for (\S++)\s++(?:ptxas info\s*+:\s*+)?\d++ bytes stack frame, (\d{1,18}) bytes spill stores, (\d{1,18}) bytes",
        log,
    )
    return {name: int(stores) + int(loads) for name, stores, loads in (match.groups() for match in found)}
