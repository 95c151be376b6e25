"""compute-sanitizer (https://docs.nvidia.com/compute-sanitizer/) over one cell's launch.

It has to start the process that it watches, so the cell runs once more, in a fresh interpreter and in a folder of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import load_backend
from harness.protocol import process_output
from harness.protocol.backend import Ended, Job
from harness.protocol.messages import Order, Rehearsal, Setup

_ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
_REPORT = re.compile(r"^=+ ((?:Invalid|Program hit|Error|Warning|Target|Leaked).*?)\s*$", re.MULTILINE)
_SEEN = 3


def check(name: str, setup: Setup, order: Order) -> dict[str, Any]:
    """Run the cell under memcheck.

    Returns
    -------
    dict
        ``tool`` and ``version``; ``errors``, their number, null if it did not finish; ``found``, its first words
        on each of the first ones.
    """
    tool, scratch = order.sanitizer, order.scratch / "sanitizer"
    scratch.mkdir()
    log, job = scratch / "log", scratch / "job.json"
    job.write_bytes(Rehearsal(setup, replace(order, scratch=scratch)).to_line())
    package = Path(__file__).resolve().parents[1]
    boot = [sys.executable, "-s", str(package / "worker" / "boot.py"), str(package), name, str(job)]
    # Under the deadline of the cell and in its process group, as everything that it starts; what it prints is the cell's output.
    subprocess.run([tool, "--tool", "memcheck", "--log-file", str(log), *boot], stdin=subprocess.DEVNULL, cwd=scratch)
    text = process_output.read_file(log) if log.is_file() else ""
    counted = _ERRORS.findall(text)
    return {
        "tool": "memcheck",
        "version": _version(tool),
        "errors": int(counted[-1]) if counted else None,
        "found": _found(text),
    }


def _found(text: str) -> list[str]:
    """First lines of what it reports: "Invalid __global__ write of size 4 bytes"."""
    return list(dict.fromkeys(_REPORT.findall(text)))[:_SEEN]


def _version(tool: str) -> str:
    said = process_output.run([tool, "--version"], errors=process_output.Errors.DROPPED).said
    match = re.search(r"Version ([\d.]+)", said)
    return match[1] if match else ""


def run_once(name: str, file: str) -> None:
    """Load a backend and run one job in this process; how it ends is the sanitizer's to tell."""
    rehearsal = Rehearsal.from_line(Path(file).read_bytes())
    backend = load_backend(name, rehearsal.setup)
    backend.prepare(rehearsal.setup)
    try:
        backend.execute(rehearsal.setup, Job.of(rehearsal.order))
    except Ended as ended:
        print(f"{ended.status}: {ended.reason}", file=sys.stderr)
