"""compute-sanitizer (https://docs.nvidia.com/compute-sanitizer/) over one cell's launch.

It has to start the process that it watches, so the cell runs once more, in a fresh interpreter and in a folder of its own.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.protocol.backend import Backend, Ended, Job, Setup

_ERRORS = re.compile(r"ERROR SUMMARY: (\d+) error")
_REPORT = re.compile(r"^=+ ((?:Invalid|Program hit|Error|Warning|Target|Leaked).*?)\s*$", re.MULTILINE)
_SEEN = 3


def check(tool: str, setup: Setup, request: dict[str, Any]) -> dict[str, Any]:
    """Run the cell under memcheck.

    Returns
    -------
    dict
        ``tool`` and ``version``; ``errors``, how many it counted, null where it did not come to an end; ``found``, its first words
        on each of the first ones.
    """
    scratch = Path(request["job"]["scratch"]) / "sanitizer"
    scratch.mkdir()
    log, job = scratch / "log", scratch / "job.json"
    fields = {**asdict(setup), "home": str(setup.home), "tools": str(setup.tools)}
    job.write_text(json.dumps({"setup": fields, "job": {**request["job"], "scratch": str(scratch)}}), "utf-8")
    package = Path(__file__).resolve().parents[1]
    boot = [sys.executable, "-s", str(package / "worker" / "boot.py"), str(package), request["backend"], str(job)]
    # Under the deadline of the cell and in its process group, as everything that it starts.
    subprocess.run([tool, "--tool", "memcheck", "--log-file", str(log), *boot], stdin=subprocess.DEVNULL, cwd=scratch)
    text = log.read_text("utf-8", "replace") if log.is_file() else ""
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
    said = subprocess.run([tool, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    match = re.search(r"Version ([\d.]+)", said)
    return match[1] if match else ""


def run_once(name: str, file: str) -> None:
    """Load a backend and run one job in this process; how it ends is the sanitizer's to tell."""
    request = json.loads(Path(file).read_text("utf-8"))
    fields, job = request["setup"], request["job"]
    setup = Setup(**{**fields, "home": Path(fields["home"]), "tools": Path(fields["tools"])})
    backend: Backend = importlib.import_module(f"harness.backends.{BACKENDS[name].module}").backend
    backend.prepare(setup)
    try:
        backend.execute(setup, Job(**{**job, "source": Path(job["source"]), "scratch": Path(job["scratch"])}))
    except Ended as ended:
        print(f"{ended.status}: {ended.reason}", file=sys.stderr)
