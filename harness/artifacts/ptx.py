"""PTX: the header's target and version, and the kernels' names (https://docs.nvidia.com/cuda/parallel-thread-execution/)."""

from __future__ import annotations

import re

from harness.artifacts.contents import Contents
from harness.model import KernelResources, Target

_TARGET = re.compile(r"^\s*\.target\s+sm_(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
# Compilers write the braces of a function's body at the beginning of a line.
_BODY, _END = re.compile(r"^\s*\{", re.MULTILINE), re.compile(r"^\}", re.MULTILINE)
_INSTRUCTION = re.compile(
    r"^\s*(?:@!?%\w+\s+)?([a-z]\w*(?:\.(?:global|shared|local|param|const))?)[^;:{}]*;", re.MULTILINE
)


def read_ptx(text: str) -> Contents:
    """Target, as the virtual architecture, and kernels of a PTX text.

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
            KernelResources(name=name, instructions=len(code), opcodes=len(set(code))) for name, code in bodies.items()
        ),
        tuple(name for name, code in bodies.items() if _only_traps(code)),
    )


def _only_traps(code: list[str]) -> bool:
    # Behind a trap stands an exit, which is never reached; another one would be.
    last = code[-2:] in (["trap", "exit"], ["trap", "ret"])
    return last and code.count("exit") + code.count("ret") == 1


def _bodies(text: str) -> dict[str, list[str]]:
    """Names of the instructions of every kernel, without their types: ``st.global``."""
    found: dict[str, list[str]] = {}
    for entry in _ENTRY.finditer(text):
        start = _BODY.search(text, entry.end())
        end = _END.search(text, start.end()) if start else None
        body = text[start.end() : end.start()] if start and end else ""
        found.setdefault(entry[1], [match[1] for match in _INSTRUCTION.finditer(body)])
    return found
