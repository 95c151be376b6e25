"""Cubins: ELF files.

Their NVIDIA parts are laid out as LLVM's ``llvm/BinaryFormat/ELF.h`` (``EF_CUDA_*``) and the binary tools'
``cuobjdump --dump-resource-usage`` show them.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from harness.artifacts.code import Code, read_code
from harness.model import KernelResources, Target

_EM_CUDA = 190
_ENTRY = 0x10  # STO_CUDA_ENTRY, in a symbol's st_other
_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x11, 0x12, 0x2F
_SIZED_VALUE = 4
_SYSTEM_SHARED = 1024  # what the system reserves in each block from sm_90 on, counted in .nv.shared.* of linked cubins


def read_cubin(data: bytes, log: str = "") -> tuple[Target, tuple[KernelResources, ...]]:
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
        elf = ELFFile(io.BytesIO(data + b"\0"))
        if elf.header["e_machine"] not in (_EM_CUDA, "EM_CUDA"):
            raise ValueError("not a cubin: an ELF file for another machine")
        return _target(elf), tuple(_kernels(elf, _spills(log)))
    except (ELFError, struct.error, KeyError, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"not a cubin: {error}") from None


def is_relocatable(data: bytes) -> bool:
    """Whether a cubin has still to be linked (ELF's ET_REL)."""
    return data[16:18] == b"\x01\x00"


def only_traps(data: bytes) -> list[str]:
    """Kernels of a cubin that do nothing but end in a trap, whatever they are given."""
    elf = ELFFile(io.BytesIO(data + b"\0"))
    return [kernel.name for kernel in _kernels(elf, {}) if (code := _code(elf, kernel.name)) and code.only_traps]


def _code(elf: ELFFile, name: str) -> Code | None:
    section = elf.get_section_by_name(f".text.{name}")
    return read_code(section.data(), _target(elf).cc) if section is not None else None


def _target(elf: ELFFile) -> Target:
    flags, abi = elf.header["e_flags"], elf.header["e_ident"]["EI_ABIVERSION"]
    number = (flags >> 8) & 0xFF if abi >= 8 else flags & 0xFF
    suffix = "a" if abi < 8 and flags & 0x800 else ""
    note = elf.get_section_by_name(".note.nv.tkinfo")
    if note is not None:
        # The newer ABI has no flag for the suffix; the note quotes the assembler's command line.
        named = re.search(rb"(?:sm|compute)_%d([af])\b" % number, note.data())
        suffix = named[1].decode() if named else suffix
    return Target(virtual=False, cc=number, suffix=suffix)


def _kernels(elf: ELFFile, spills: dict[str, int]) -> Iterator[KernelResources]:
    symbols = elf.get_section_by_name(".symtab")
    if symbols is None:
        return
    raw, size = symbols.data(), symbols["sh_entsize"]
    values = _info(elf)
    reserved = _SYSTEM_SHARED if _target(elf).cc >= 90 and elf.header["e_type"] == "ET_EXEC" else 0
    for index, symbol in enumerate(symbols.iter_symbols()):
        if symbol["st_info"]["type"] != "STT_FUNC" or not raw[index * size + 5] & _ENTRY:
            continue
        name = symbol.name
        shared = elf.get_section_by_name(f".nv.shared.{name}")
        const = elf.get_section_by_name(f".nv.constant0.{name}")
        code = _code(elf, name)
        yield KernelResources(
            name=name,
            num_regs=values.get((index, _REGCOUNT)),
            shared_bytes=max(0, shared["sh_size"] - reserved) if shared is not None else 0,
            local_bytes=values.get((index, _FRAME_SIZE)),
            stack_bytes=values.get((index, _MIN_STACK_SIZE)),
            const_bytes=const["sh_size"] if const is not None else 0,
            spill_bytes=spills.get(name),
            instructions=code.instructions if code else None,
            opcodes=code.opcodes if code else None,
        )


def _info(elf: ELFFile) -> dict[tuple[int, int], int]:
    """Values of ``.nv.info`` by symbol and attribute."""
    section = elf.get_section_by_name(".nv.info")
    data = section.data() if section is not None else b""
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
        r"Function properties for (\S+)\s+(?:ptxas info\s*:\s*)?\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes",
        log,
    )
    return {name: int(stores) + int(loads) for name, stores, loads in (match.groups() for match in found)}
