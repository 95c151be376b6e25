"""Machine code of a cubin, as far as it tells whether a kernel does anything.

Only the opcodes of four instructions are known here, as the binary utilities show them: NOP, EXIT, BRA and BPT, which is what
``trap`` becomes. From 7.0 on an instruction has 16 bytes, with the opcode in the lowest 12 bits; before, one word of 8 in four is for
scheduling, and the opcode is in the highest bits (https://docs.nvidia.com/cuda/cuda-binary-utilities/#instruction-set-reference).
"""

from __future__ import annotations

from collections import Counter
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


def read_code(text: bytes | memoryview, cc: int) -> Code:
    """Read the section ``.text.<kernel>`` of a cubin for compute capability `cc` (80)."""
    counts = _opcodes(text, cc)
    names = _NEW if cc >= 70 else _OLD
    # The end is filled up with NOPs, and with a branch to itself.
    telling = {code: count for code, count in counts.items() if names.get(code) not in ("NOP", "BRA")}
    found = {names.get(code) for code in counts}
    return Code(sum(telling.values()), len(telling), "EXIT" in found, "BPT" in found)


_NEW = {0x918: "NOP", 0x94D: "EXIT", 0x947: "BRA", 0x95C: "BPT"}
_OLD = {0x50B: "NOP", 0xE30: "EXIT", 0xE24: "BRA", 0xE3A: "BPT"}


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
