"""The instructions of a kernel: how many, how it ends, and which of them use tensor cores.

Few opcodes are known here, as the binary utilities show them: NOP, EXIT, BRA, BPT, which is what ``trap`` becomes, and those of tensor cores.
From 7.0 on an instruction has 16 bytes, with the opcode in the lowest 12 bits; before, one word of 8 in four is for scheduling, and the
opcode is in the highest bits (https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """The instructions of a function.

    Parameters
    ----------
    instructions : int
        How many there are, without those that fill up its end.
    opcodes : int
        How many kinds of them.
    ends : bool
        Whether one of them ends the kernel as usual.
    traps : bool
        Whether one of them is a trap.
    tensor_cores : tuple of str
        Instructions for tensor cores among them: ``HMMA``.
    """

    instructions: int
    opcodes: int
    ends: bool
    traps: bool
    tensor_cores: tuple[str, ...] = ()

    @property
    def only_traps(self) -> bool:
        """Return whether every path through it ends in a trap."""
        return self.traps and not self.ends


def read_code(text: bytes | memoryview, cc: int) -> Code:
    """Read the section ``.text.<kernel>`` of a cubin for compute capability `cc` (80)."""
    counts = _opcodes(text, cc)
    names = _NEW if cc >= 70 else _OLD
    # The end is filled up with NOPs, and with a branch to itself.
    telling = {code: count for code, count in counts.items() if names.get(code) not in ("NOP", "BRA")}
    found = {names.get(code) for code in counts}
    return Code(sum(telling.values()), len(telling), "EXIT" in found, "BPT" in found, _tensor_cores(counts, cc))


_NEW = {0x918: "NOP", 0x94D: "EXIT", 0x947: "BRA", 0x95C: "BPT"}
_OLD = {0x50B: "NOP", 0xE30: "EXIT", 0xE24: "BRA", 0xE3A: "BPT"}

# Found by what nvdisasm 12.4 (sm_70, sm_72) and 13.5 (sm_75 to sm_120) make of cubins of ptxas 12.4, 12.9 and 13.5 (tests/artifacts/test_code.py).
# The lowest nine bits are the instruction, the other three the kinds of its operands. UTCHMMA, UTCIMMA, UTCQMMA and UTCOMMA are one opcode.
_TENSOR_CORES = {
    0x037: "IMMA", 0x03C: "HMMA", 0x03D: "BMMA", 0x03F: "DMMA", 0x07A: "QMMA", 0x07F: "OMMA",
    0x1EA: "UTCxMMA", 0x1F0: "HGMMA", 0x1F1: "IGMMA", 0x1F2: "BGMMA", 0x1F3: "QGMMA",
}  # fmt: skip
_VOLTA = {0x036: "HMMA", 0x037: "IMMA"}  # VIADD from 9.0 on is 0x836


def _tensor_cores(opcodes: Iterable[int], cc: int) -> tuple[str, ...]:
    known = {} if cc < 70 else _VOLTA if cc < 75 else _TENSOR_CORES
    return tuple(sorted({known[code & 0x1FF] for code in opcodes if code & 0x1FF in known}))


def _opcodes(text: bytes | memoryview, cc: int) -> Counter[int]:
    """Count instructions by opcode; code of gigabytes is counted in place, without a list of its instructions."""
    parts = memoryview(text)[: len(text) // 8 * 8].cast(
        "H"
    )  # an instruction's opcode lies in one of its parts of 16 bits
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


# In text without comments, at the beginning of an instruction.
_PTX_TENSOR_CORES = re.compile(
    r"(?:^|[;{}])\s*+(?:@!?%?\w++\s++)?+(mma|wmma\.mma|wgmma\.mma_async|tcgen05\.mma)[.:]", re.MULTILINE
)
_PTX_COMMENT = re.compile(r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?")


def tensor_cores_of_ptx(text: str) -> tuple[str, ...]:
    """Instructions for tensor cores in PTX, in alphabetical order: ``mma``, ``tcgen05.mma``, ``wgmma.mma_async``, ``wmma.mma``."""
    if "mma" not in text:
        return ()
    return tuple(sorted(set(_PTX_TENSOR_CORES.findall(_PTX_COMMENT.sub(" ", text)))))
