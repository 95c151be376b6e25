"""Measure commands that compile nothing, including completion: least processor time and wall time of several rounds, in seconds.

The script also measures the time from the start of a run to its first compiler.

starts.py --rounds 10
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MAIN = [sys.executable, "-c", "from harness.cli import main; main()"]
COMMANDS = ("--help", "cases list", "cases list --json", "run --help", "try --help", "ask --help")
BEGUN = (
    "ru", "run --no-", "run -b nv", "run -t 12.", "run -a sm_", "run --with cu", "run --library cut", "run wm", "run wmma/",
)  # fmt: skip
"""Command lines whose last word the shell completes."""
FIRST = "cumatrix run wmma/accumulator-16x16x8 -b nvrtc -a sm_80 -j 1 --device none --no-cache"


def measured(argv: list[str], rounds: int, **variables: str) -> tuple[float, float]:
    """Return the least processor time and the least wall time of a command, in seconds."""
    found = []
    for _ in range(rounds):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*_MAIN, *argv], env={**os.environ, **variables}, capture_output=True, check=not variables)
        wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    return min(used for used, _ in found), min(wall for _, wall in found)


def first_compilers(rounds: int, toolkit: str) -> list[float]:
    """Return the seconds from the start of a run to the start of its first compiler, sorted."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        argv = [
            *_MAIN,
            *FIRST.split()[1:],
            "-t",
            toolkit,
            "--trace",
            f"{folder}/trace.json",
            "--out",
            f"{folder}/records.jsonl",
        ]
        for _ in range(rounds):
            started = time.time()
            subprocess.run(argv, capture_output=True, check=True)
            trace = json.loads(Path(folder, "trace.json").read_text())
            child = min(span["ts"] for span in trace["traceEvents"] if span["name"] == "child")
            found.append(trace["otherData"]["began"] + child / 1e6 - started)
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print one JSON object a command")
    parser.add_argument(
        "--toolkit", default="12.9", help="an installed CUDA release for the first compiler (default: 12.9)"
    )
    options = parser.parse_args()
    for text in (*COMMANDS, *(f"{line}<Tab>" for line in BEGUN)):
        line, tab, _ = text.partition("<Tab>")
        words = line.split()
        completing = {
            "_CUMATRIX_COMPLETE": "bash_complete",
            "COMP_WORDS": f"cumatrix {line}",
            "COMP_CWORD": str(len(words)),
        }
        used, wall = measured([] if tab else words, options.rounds, **(completing if tab else {}))
        if options.json:
            print(json.dumps({"command": text, "processor_s": round(used, 3), "wall_s": round(wall, 3)}))
        else:
            print(f"{text:20}  processor {used:.3f} s, wall {wall:.3f} s")
    first = first_compilers(options.rounds, options.toolkit)
    best, middle = first[0], statistics.median(first)
    if options.json:
        print(json.dumps({"command": FIRST, "best_s": round(best, 3), "median_s": round(middle, 3)}))
    else:
        print(f"to the first compiler: {best:.3f} s at best, median {middle:.3f} s ({FIRST} -t {options.toolkit})")


if __name__ == "__main__":
    main()
