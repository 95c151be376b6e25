"""PTX: the header's target and version, and the kernels' names (https://docs.nvidia.com/cuda/parallel-thread-execution/).

PTX is hostile text, since inline assembly reaches it as written. Every expression is searched once over each part of the text, and no
expression looks at the same part from several starting points: blanks are matched on one line only, or possessively (`*+`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness.artifacts.contents import Contents
from harness.model import KernelResources, Target

_TARGET = re.compile(r"^[^\S\n]*+\.target\s++sm_(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s++([\w$]+)")
# Compilers write the braces of a function's body at the beginning of a line.
_BODY, _END = re.compile(r"^[^\S\n]*+\{", re.MULTILINE), re.compile(r"^\}", re.MULTILINE)
# An instruction ends at its semicolon. Text that reaches another mark first is none, and neither is any line up to that mark.
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

    @property
    def only_traps(self) -> bool:
        # Behind a trap stands an exit, which is never reached; another one would be.
        return self.last[0] == "trap" and self.last[1] in _LEAVES and self.leaves == 1


def read_ptx(text: str) -> Contents:
    """Read the target, as the virtual architecture, and the kernels of a PTX text, in time that grows with its length.

    Raises
    ------
    ValueError
        When it names no target.
    """
    found = _TARGET.search(text)
    if not found:
        raise ValueError("not PTX: it has no .target")
    bodies = _bodies(text)
    return Contents(
        Target.parse(f"compute_{found[1]}"),
        tuple(
            KernelResources(name=name, instructions=body.count, opcodes=len(body.kinds))
            for name, body in bodies.items()
        ),
        tuple(name for name, body in bodies.items() if body.only_traps),
    )


def _bodies(text: str) -> dict[str, _Body]:
    """Kernels by name, of each the first body that follows its name. Functions of PTX do not nest: ``.entry`` within a body is no kernel."""
    found: dict[str, _Body] = {}
    place = 0
    while entry := _ENTRY.search(text, place):
        start = _BODY.search(text, entry.end())
        end = _END.search(text, start.end()) if start else None
        body = _read_body(text[start.end() : end.start()]) if start and end else _Body()
        place = end.end() if end else len(text)
        # A kernel that is only declared stands before the body of another one.
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
    return body
