"""Machine code of a cubin, as far as it tells whether a kernel does anything.

Only the opcodes of four instructions are known here, as the binary utilities show them: NOP, EXIT, BRA and BPT, which is what
``trap`` becomes. From 7.0 on an instruction has 16 bytes, with the opcode in the lowest 12 bits; before, one word of 8 in four is for
scheduling, and the opcode is in the highest bits (https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """What a kernel's code is made of.

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
    """

    instructions: int
    opcodes: int
    ends: bool
    traps: bool

    @property
    def only_traps(self) -> bool:
        """Whether no path through it ends but in a trap."""
        return self.traps and not self.ends


def read_code(text: bytes, cc: int) -> Code:
    """What the section ``.text.<kernel>`` of a cubin for compute capability `cc` (80) is made of."""
    codes = list(_opcodes(text, cc))
    names = [(_NEW if cc >= 70 else _OLD).get(code, "") for code in codes]
    # The end is filled up with NOPs, and with a branch to itself.
    telling = [code for code, name in zip(codes, names, strict=True) if name not in ("NOP", "BRA")]
    return Code(len(telling), len(set(telling)), "EXIT" in names, "BPT" in names)


_NEW = {0x918: "NOP", 0x94D: "EXIT", 0x947: "BRA", 0x95C: "BPT"}
_OLD = {0x50B: "NOP", 0xE30: "EXIT", 0xE24: "BRA", 0xE3A: "BPT"}


def _opcodes(text: bytes, cc: int) -> Iterator[int]:
    words = struct.unpack(f"<{len(text) // 8}Q", text[: len(text) // 8 * 8])
    if cc >= 70:
        yield from (word & 0xFFF for word in words[::2])
    else:
        yield from (word >> 52 for place, word in enumerate(words) if place % 4)
