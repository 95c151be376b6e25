"""Cubins and PTX: their targets, kernels and instructions.

The NVIDIA-specific parts of cubins follow LLVM's ``llvm/BinaryFormat/ELF.h`` (``EF_CUDA_*``) and the output of
``cuobjdump --dump-resource-usage``.

PTX is hostile text, because inline assembly reaches it unchanged. Every regular expression searches each part of the text once, and none
tries the same part from several starting points: blanks match within one line only, or possessively (`*+`).
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.artifacts.elf import ET_EXEC, ET_REL, HEADER, STT_FUNC, Elf
from harness.diagnostics import clean
from harness.model import KernelResources, Target


@dataclass(frozen=True)
class Code:
    """The instructions of a function.

    Only a few opcodes are recognized, as the binary utilities print them: NOP, EXIT, BRA, BPT (the code of ``trap``), and those of tensor
    cores. From compute capability 7.0 on, an instruction has 16 bytes, with the opcode in the lowest 12 bits. Before 7.0, an instruction has
    8 bytes, every fourth 8-byte word holds scheduling information, and the opcode is in the highest bits
    (https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference).

    Parameters
    ----------
    instructions : int
        Number of instructions without the padding at the end.
    opcodes : int
        Number of different opcodes.
    ends : bool
        Whether an instruction ends the kernel normally.
    traps : bool
        Whether an instruction is a trap.
    tensor_cores : tuple of str
        Tensor-core instructions: ``HMMA``.
    """

    instructions: int
    opcodes: int
    ends: bool
    traps: bool
    tensor_cores: tuple[str, ...] = ()

    @property
    def only_traps(self) -> bool:
        """Return whether every path through the function ends in a trap."""
        return self.traps and not self.ends


def read_code(text: bytes | memoryview, cc: int) -> Code:
    """Read the section ``.text.<kernel>`` of a cubin for compute capability `cc` (80)."""
    counts = _opcodes(text, cc)
    names = _NEW if cc >= 70 else _OLD
    # NOPs and a branch to itself pad the end.
    telling = {code: count for code, count in counts.items() if names.get(code) not in ("NOP", "BRA")}
    found = {names.get(code) for code in counts}
    return Code(sum(telling.values()), len(telling), "EXIT" in found, "BPT" in found, _tensor_cores(counts, cc))


_NEW = {0x918: "NOP", 0x94D: "EXIT", 0x947: "BRA", 0x95C: "BPT"}
_OLD = {0x50B: "NOP", 0xE30: "EXIT", 0xE24: "BRA", 0xE3A: "BPT"}

# Derived from the output of nvdisasm 12.4 (sm_70, sm_72) and 13.5 (sm_75 to sm_120) for cubins of ptxas 12.4, 12.9 and 13.5
# (tests/artifacts/test_code.py). The lowest nine bits are the instruction, the other three the kinds of its operands. UTCHMMA, UTCIMMA,
# UTCQMMA and UTCOMMA share one opcode.
_TENSOR_CORES = {
    0x037: "IMMA", 0x03C: "HMMA", 0x03D: "BMMA", 0x03F: "DMMA", 0x07A: "QMMA", 0x07F: "OMMA",
    0x1EA: "UTCxMMA", 0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
_VOLTA = {0x036: "HMMA", 0x037: "IMMA"}  # VIADD is 0x836 from 9.0 on


def _tensor_cores(opcodes: Iterable[int], cc: int) -> tuple[str, ...]:
    known = {} if cc < 70 else _VOLTA if cc < 75 else _TENSOR_CORES
    return tuple(sorted({known[code & 0x1FF] for code in opcodes if code & 0x1FF in known}))


def _opcodes(text: bytes | memoryview, cc: int) -> Counter[int]:
    """Count instructions by opcode, in place, because code can have gigabytes."""
    parts = memoryview(text)[: len(text) // 8 * 8].cast("H")  # the opcode is in one of the instruction's 16-bit parts
    found: Counter[int] = Counter()
    if cc >= 70:
        for part, count in Counter(parts[::8]).items():
            found[part & 0xFFF] += count
        return found
    codes = Counter(parts[3::4])
    codes.subtract(Counter(parts[3::16]))
    for part, count in codes.items():
        if count:
            found[part >> 4] += count
    return found


# Matches at the beginning of an instruction, in text without comments.
_PTX_TENSOR_CORES = re.compile(
    r"(?:^|[;{}])\s*+(?:@!?%?\w++\s++)?+(mma|wmma\.mma|wgmma\.mma_async|tcgen05\.mma)[.:]", re.MULTILINE
)
_PTX_COMMENT = re.compile(r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?")


def tensor_cores_of_ptx(text: str) -> tuple[str, ...]:
    """Return the tensor-core instructions in PTX, in alphabetical order.

    These are ``mma``, ``tcgen05.mma``, ``wgmma.mma_async`` and ``wmma.mma``.
    """
    if "mma" not in text:
        return ()
    return tuple(sorted(set(_PTX_TENSOR_CORES.findall(_PTX_COMMENT.sub(" ", text)))))


@dataclass(frozen=True)
class Contents:
    """Target and kernels of a cubin or a PTX text.

    Parameters
    ----------
    target : Target
        The target.
    kernels : tuple of KernelResources
        In file order.
    only_trap : tuple of str
        Names of the kernels whose only effect is a trap, whatever their arguments.
    """

    target: Target
    kernels: tuple[KernelResources, ...]
    only_trap: tuple[str, ...] = ()


def split(data: bytes) -> list[bytes]:
    """Split concatenated ELF files, such as artifacts of several kernels; the last file keeps any remaining bytes.

    A file ends with its tables of section and program headers: ptxas, nvlink and nvJitLink write cubins in this order.
    """
    found: list[bytes] = []
    start = 0
    while data.startswith(b"\x7fELF", start) and len(data) - start >= HEADER.size:
        fields = HEADER.unpack_from(data, start)
        programs, sections = fields[5:7]
        program_size, programs_count, section_size, sections_count = fields[9:13]
        end = max(HEADER.size, programs + program_size * programs_count, sections + section_size * sections_count)
        found.append(data[start : start + end])
        start += end
    if start < len(data) or not found:
        found[-1:] = [b"".join((*found[-1:], data[start:]))]
    return found


EM_CUDA = 190
_KERNEL_SYMBOL = 0x10  # STO_CUDA_ENTRY, in a symbol's st_other
_FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x11, 0x12, 0x2F
_SIZED_VALUE = 4
_SYSTEM_SHARED = 1024  # reserved by the system in each block from sm_90 on; .nv.shared.* of linked cubins includes it


def read_cubin(data: bytes, log: str = "") -> Contents:
    """Read the target and kernels of a cubin.

    Parameters
    ----------
    data : bytes
        The cubin.
    log : str
        Output of ``ptxas -v`` for the cubin, if it ran with ``-v``: the only source of spills.

    Raises
    ------
    ValueError
        If `data` is not a cubin.
    """
    try:
        # CuPy takes the last byte of NVRTC's output for a terminator and cuts it off.
        elf = Elf(data + b"\0")
        if elf.machine != EM_CUDA:
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


def kernel_names_of_cubin(data: bytes) -> tuple[Target, frozenset[str]]:
    """Return the target of a cubin and the names of its kernels, without reading their code.

    Raises
    ------
    ValueError
        If `data` is not a cubin.
    """
    try:
        elf = Elf(data)
        if elf.machine != EM_CUDA:
            raise ValueError("an ELF file for another machine")
        names = (each.name for each in elf.symbols() if each.type == STT_FUNC and each.other & _KERNEL_SYMBOL)
        return _target(elf), frozenset(names)
    except (ValueError, struct.error) as error:
        raise ValueError(f"not a cubin: {error}") from None


def is_empty_cubin(data: bytes) -> bool:
    """Return whether a cubin has neither functions nor variables; nvcc writes one for a file without device code.

    Raises
    ------
    ValueError
        If `data` is not a cubin.
    """
    elf = Elf(data)
    if elf.machine != EM_CUDA:
        raise ValueError("no cubin")
    return not any(section.name.startswith((".text.", ".nv.global", ".nv.constant")) for section in elf.all_sections)


def is_empty_ptx(text: str) -> bool:
    """Return whether PTX has neither functions nor variables; their keywords in a comment count too."""
    return not any(word in text for word in (".entry", ".func", ".global", ".const"))


def kernel_names_of_ptx(text: str) -> frozenset[str]:
    """Return the names of the kernels in PTX, without reading their code."""
    return frozenset(_ENTRY.findall(text))


_VERSION = re.compile(r"^[^\S\n]*+\.version\s++(\d{1,3})\.(\d{1,3})\b", re.MULTILINE)


def header_of_ptx(text: str) -> tuple[Target, tuple[int, int]]:
    """Return the target of PTX as a virtual architecture, and the version of the PTX.

    Raises
    ------
    ValueError
        If `text` has no target or no version.
    """
    target, version = _TARGET.search(text), _VERSION.search(text)
    if not target or not version:
        raise ValueError("not PTX: it has no .version and .target")
    return Target.parse(target[1]).as_virtual, (int(version[1]), int(version[2]))


def is_relocatable(data: bytes) -> bool:
    """Return whether a cubin still has to be linked (ELF's ET_REL)."""
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
    others = _without_own(elf, target)
    reserved = _SYSTEM_SHARED if target.cc >= 90 and elf.type == ET_EXEC else 0
    for index, symbol in enumerate(elf.symbols()):
        if symbol.type != STT_FUNC or not symbol.other & _KERNEL_SYMBOL:
            continue
        name = symbol.name
        shared = elf.sections.get(f".nv.shared.{name}")
        const = elf.sections.get(f".nv.constant0.{name}")
        text = elf.sections.get(f".text.{name}")
        if text is not None and name not in codes:
            # Sections from a compiler do not overlap; a hostile file could make every symbol read the same code.
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
            tensor_cores=(" ".join(code.tensor_cores) or others) if code else None,
        )
        yield resources, code


def _without_own(elf: Elf, target: Target) -> str | None:
    """Return the tensor-core instructions for kernels without any of their own.

    The result is empty, or None (unknown) if functions that the kernels may call could contain some.
    """
    return None if elf.type == ET_REL or _functions_use_tensor_cores(elf, target.cc) else ""


def _functions_use_tensor_cores(elf: Elf, cc: int) -> bool:
    kernels = {f".text.{each.name}" for each in elf.symbols() if each.other & _KERNEL_SYMBOL}
    functions = [each for name, each in elf.sections.items() if name.startswith(".text.") and name not in kernels]
    if sum(len(each.data) for each in functions) > elf.size:
        raise ValueError("the code of its functions overlaps")
    return any(read_code(each.data, cc).tensor_cores for each in functions)


def _info(elf: Elf) -> dict[tuple[int, int], int]:
    """Return the values of ``.nv.info`` by symbol and attribute."""
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


_TARGET = re.compile(r"^[^\S\n]*+\.target\s++(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s++([\w$]+)")
# Compilers write the braces of a function's body at the beginning of a line.
_BODY, _END = re.compile(r"^[^\S\n]*+\{", re.MULTILINE), re.compile(r"^\}", re.MULTILINE)
# An instruction ends at its semicolon. Text that ends at ":", "{" or "}" is no instruction, nor is any line before that character.
_INSTRUCTION = re.compile(
    r"^[^\S\n]*+(?:@!?%\w++\s++)?+([a-z]\w*+(?:\.(?:global|shared|local|param|const))?+)[^;:{}]*+(;?)", re.MULTILINE
)
_LEAVES = ("exit", "ret")


@dataclass
class _Body:
    """The instructions of a kernel, without their types: ``st.global``."""

    count: int = 0
    kinds: set[str] = field(default_factory=set)
    leaves: int = 0
    last: tuple[str, str] = ("", "")
    tensor_cores: str = ""

    @property
    def only_traps(self) -> bool:
        # An unreachable exit follows a trap. A second exit would be reachable.
        return self.last[0] == "trap" and self.last[1] in _LEAVES and self.leaves == 1


def read_ptx(text: str) -> Contents:
    """Read the target, as a virtual architecture, and the kernels of a PTX text in linear time.

    Raises
    ------
    ValueError
        If `text` has no target.
    """
    found = _TARGET.search(text)
    if not found:
        raise ValueError("not PTX: it has no .target")
    bodies = _bodies(text)
    # A function that a kernel calls has a body of its own.
    others = None if ".func" in text and tensor_cores_of_ptx(text) else ""
    return Contents(
        Target.parse(found[1]).as_virtual,
        tuple(
            KernelResources(
                name=name, instructions=body.count, opcodes=len(body.kinds), tensor_cores=body.tensor_cores or others
            )
            for name, body in bodies.items()
        ),
        tuple(name for name, body in bodies.items() if body.only_traps),
    )


def _bodies(text: str) -> dict[str, _Body]:
    """Return kernels by name, each with the first body that follows its name.

    PTX functions do not nest: ``.entry`` within a body is no kernel.
    """
    found: dict[str, _Body] = {}
    place = 0
    while entry := _ENTRY.search(text, place):
        start = _BODY.search(text, entry.end())
        end = _END.search(text, start.end()) if start else None
        body = _read_body(text[start.end() : end.start()]) if start and end else _Body()
        place = end.end() if end else len(text)
        # A kernel that is only declared precedes the body of another kernel.
        for each in _ENTRY.finditer(text, entry.start(), start.start() if start else place):
            found.setdefault(each[1], body)
    return found


def _read_body(text: str) -> _Body:
    body = _Body()
    for found in _INSTRUCTION.finditer(text):
        name, end = found.groups()
        if end:
            body.count += 1
            body.kinds.add(name)
            body.leaves += name in _LEAVES
            body.last = body.last[1], name
    body.tensor_cores = " ".join(tensor_cores_of_ptx(text))
    return body


_USAGE_ENTRY = re.compile(r"Compiling entry function '([^']{1,4000})' for '(sm_\d{2,3}[af]?)'")
# A log is hostile text: a number matches from one starting point only, and has at most 18 digits.
_SPILLS = re.compile(
    r"(?<!\d)(\d{1,18}) bytes stack frame, (\d{1,18}) bytes spill stores, (\d{1,18}) bytes spill loads"
)
_USED = re.compile(r"Used (\d{1,18}) registers")
_SHARED = re.compile(r"(?<!\d)(\d{1,18})(?:\+\d{1,18})? bytes smem")


def kernels_of_log(log: str, target: str | None = None) -> list[tuple[dict[str, Any], str]]:
    """Return the kernels in a log, as records store them, each with its target.

    The last compilation of a kernel counts.

    Parameters
    ----------
    log : str
        Output of ``ptxas -v`` or ``nvcc -Xptxas -v``.
    target : str, optional
        Return only kernels for this target.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    kernel: dict[str, Any] | None = None
    for line in clean(log).splitlines():
        if match := _USAGE_ENTRY.search(line):
            kernel = {"name": match[1], "num_regs": None, "shared_bytes": 0, "spill_bytes": None}
            found[match[1], match[2]] = kernel
        elif kernel is None:
            continue
        elif match := _SPILLS.search(line):
            # Printed for the kernel, and then for each function that it calls.
            kernel["spill_bytes"] = max(int(match[2]), kernel["spill_bytes"] or 0)
        elif match := _USED.search(line):
            kernel["num_regs"] = int(match[1])
            if shared := _SHARED.search(line):
                kernel["shared_bytes"] = int(shared[1])
            kernel = None
    return [(kernel, arch) for (_, arch), kernel in found.items() if target in (None, arch)]


__all__ = [
    "Contents", "header_of_ptx", "is_relocatable", "kernel_names_of_cubin", "kernel_names_of_ptx", "read_cubin", "read_ptx",
]  # fmt: skip
