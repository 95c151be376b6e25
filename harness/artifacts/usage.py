"""What ``ptxas -v`` says of kernels, out of anybody's build log."""

from __future__ import annotations

import re
from typing import Any

from harness.diagnostics import clean

_ENTRY = re.compile(r"Compiling entry function '([^']{1,4000})' for '(sm_\d{2,3}[af]?)'")
# A log is hostile text: a number begins in one place only and is no longer than one.
_SPILLS = re.compile(
    r"(?<!\d)(\d{1,18}) bytes stack frame, (\d{1,18}) bytes spill stores, (\d{1,18}) bytes spill loads"
)
_USED = re.compile(r"Used (\d{1,18}) registers")
_SHARED = re.compile(r"(?<!\d)(\d{1,18})(?:\+\d{1,18})? bytes smem")


def kernels_of_log(log: str, target: str | None = None) -> list[tuple[dict[str, Any], str]]:
    """Kernels with their resources, as records spell them, each with its target; of one that was compiled again the last.

    Parameters
    ----------
    log : str
        Output of ``ptxas -v`` or ``nvcc -Xptxas -v``.
    target : str, optional
        Count only this target.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    kernel: dict[str, Any] | None = None
    for line in clean(log).splitlines():
        if match := _ENTRY.search(line):
            kernel = {"name": match[1], "num_regs": None, "shared_bytes": 0, "spill_bytes": None}
            found[match[1], match[2]] = kernel
        elif kernel is None:
            continue
        elif match := _SPILLS.search(line):
            # Once for the kernel, and then for each function that it calls.
            kernel["spill_bytes"] = max(int(match[2]), kernel["spill_bytes"] or 0)
        elif match := _USED.search(line):
            kernel["num_regs"] = int(match[1])
            if shared := _SHARED.search(line):
                kernel["shared_bytes"] = int(shared[1])
            kernel = None
    return [(kernel, arch) for (_, arch), kernel in found.items() if target in (None, arch)]
