"""Run every benchmark that this machine supports, and print the table of README.md as Markdown.

``python benchmarks/table.py [--toolkit 13.0] [--cupy PYTHON] [--only WORD]``. Each row runs a script of this folder and reads its figures;
the row of a failed script shows the error. The GPU tier requires a device, the main job a clean checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.records import this_machine

HERE = Path(__file__).parent
CORES = len(os.sched_getaffinity(0))
LIMIT = 1800
"""Time limit of a row in seconds."""


@dataclass(frozen=True)
class Row:
    """A measurement.

    Parameters
    ----------
    what : str
        Name in the table.
    argv : tuple of str
        Script and arguments; ``{json}`` is a file that the script writes.
    figures : callable
        Returns the text of the row from the script's output and that file.
    aim : str
        The figure to reach.
    """

    what: str
    argv: tuple[str, ...]
    figures: Callable[[str, Any], str]
    aim: str


def ratios(_text: str, value: Mapping[str, Any]) -> str:
    """Return the seconds of each side of ``peers.py``, and cumatrix's ratio to each other side."""
    seconds: dict[str, list[float]] = {}
    for each in value["measured"]:
        seconds.setdefault(each["side"], []).append(each["seconds"])
    own, *others = ((side, statistics.median(found)) for side, found in seconds.items())
    return "; ".join([f"{own[1]:.1f} s", *(f"{side} {other:.1f} s ({own[1] / other:.2f})" for side, other in others)])


def last_lines(pattern: str) -> Callable[[str, Any], str]:
    """Return the lines of the output that match."""
    return lambda text, _value: "; ".join(re.findall(pattern, text, re.MULTILINE))


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Return the measurements that this machine supports."""
    rounds, release = str(options.rounds), options.toolkit
    peers = ("peers.py", "--json", "{json}", "--rounds", rounds, "--toolkit", release, "--without", "xdist,reframe")
    few = "exceptions,shared-memory/static"
    yield Row(f"NVRTC, {CORES} cores", peers, ratios, "≤ 1.6 × loops, ≤ 0.33 × lit")
    yield Row("NVRTC, a small set, 2 cores", (*peers, "--jobs", "2", "--cases", few), ratios, "≤ 1.15 × loops, ≤ 0.67 × lit")  # fmt: skip
    if options.cupy:
        cupy = ("--backend", "cupy-nvrtc", "--python", options.cupy)
        yield Row(f"CuPy's NVRTC, {CORES} cores", (*peers, *cupy), ratios, "≤ 0.2 × lit")
    yield Row(f"nvcc, {CORES} cores", (*peers, "--backend", "nvcc"), ratios, "< 1 × each")
    if shutil.which("nvidia-smi"):
        yield Row(
            "GPU tier", ("device.py", "wmma", "atomics", "shared-memory", "language", "--toolkit", "local"),
            last_lines(r"^tier: .*$|^.* of what the driver .*$"), "≥ 14 cores, ≤ 100 s",
        )  # fmt: skip
    yield Row("second run, 10,000 unchanged cells", ("unchanged.py", "--cells", "10000"), last_lines(r"^cells .*$"), "≤ 1.0 s CPU")  # fmt: skip
    yield Row("commands, and the first compiler", ("starts.py",), last_lines(r"^to the first compiler: .*$"), "0.3 s")  # fmt: skip
    yield Row("cells on Dask", ("growth.py", "--cells", "10000,200000", "--workers", "4"), last_lines(r"^workers .*$"), "the same a cell")  # fmt: skip
    yield Row("page of 100,000 cells", ("page.py", "--cells", "100000"), last_lines(r"^(?:build|first|filter).*$"), "≤ 15 s, filters ≤ 100 ms")  # fmt: skip


def measured(row: Row, folder: Path) -> str:
    """Run the script of a row; return its figures, or the reason for having none."""
    file = folder / "figures.json"
    file.unlink(missing_ok=True)
    script, *arguments = (word.format(json=file) for word in row.argv)
    argv = [sys.executable, str(HERE / script), *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"not measured: more than {LIMIT} s"
    print(f"{script}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return f"not measured: {lines[-1] if lines else f'exit code {done.returncode}'}"
    return row.figures(done.stdout, json.loads(file.read_text()) if file.exists() else None) or "no figures"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--toolkit", default="13.0", help="an installed CUDA release, or local (default: 13.0)")
    parser.add_argument("--cupy", metavar="PYTHON", help="interpreter of an environment that has CuPy")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured (default: 3)")
    parser.add_argument("--only", default="", metavar="WORD", help="only rows with this word in name or script")
    options = parser.parse_args()
    machine = this_machine()
    print(f"{datetime.now(UTC).date()}, {CORES} cores, {machine['cpu']}, Python {machine['python']}\n")
    print("| what | command | measured | aim |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="table-") as name:
        for row in rows(options):
            if options.only in f"{row.what} {row.argv[0]}":
                command = " ".join(word for word in row.argv if word not in ("--json", "{json}"))
                print(f"| {row.what} | `{command}` | {measured(row, Path(name))} | {row.aim} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
