"""Measure an unchanged run: processor time and memory of the whole command, for 1,000 to 100,000 cells.

NVRTC compiles one cell of each program. To save compilations, the script stores that outcome in the cache for all other cells of the
program, under their own keys and for the files that were really read. `cumatrix run` must then answer every cell from the cache.

unchanged.py --cells 1000,10000,100000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.engine.context import RunRequest, prepare
from harness.engine.executor import Run
from harness.engine.plan import cells_of
from harness.model import Cell

_TARGETS = "sm_50,sm_60,sm_70,sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120"
_VARIANTS = 50
_OF_A_CASE = _VARIANTS * 10

_CASE = """title = "made up, number {number}"
source.cuda = "kernel.cu"
entry.cuda = ["scale"]
[parameters]
N = {variants}
"""
_PROGRAM = """// number {number}
extern "C" __global__ void scale(float *a) {{ a[threadIdx.x] *= N; }}
"""


def write_cases(root: Path, count: int) -> None:
    """Write `count` cases with `_OF_A_CASE` cells each."""
    for number in range(count):
        folder = root / "made-up" / f"case-{number}"
        folder.mkdir(parents=True)
        (folder / "case.toml").write_text(_CASE.format(number=number, variants=list(range(_VARIANTS))))
        (folder / "kernel.cu").write_text(_PROGRAM.format(number=number))


def fill(root: Path, toolkit: str) -> int:
    """Store an outcome for every cell in the cache; return the number of cells."""
    request = RunRequest(cases=(root,), backends="nvrtc", toolkits=toolkit, targets=_TARGETS, device="none")
    context = prepare(request)
    cells = cells_of(context)
    by_case: dict[str, list[Cell]] = {}
    for cell in cells:
        by_case.setdefault(cell.case.name, []).append(cell)
    assert context.cache is not None
    with Run(context, 1) as run:
        answers = run.resolver.answers
        for result in run.results([group[0] for group in by_case.values()]):
            first, name = answers.origins[result.key]
            worker = answers.workers[first]
            paths = answers._set(name) or ()
            state = answers.files.hash_of_set(name, paths)
            for cell in by_case[result.cell.case.name][1:]:
                prepared = run.resolver.resolve(cell)
                asked = prepared.first_key(worker)  # type: ignore[union-attr]
                context.cache.keep_fact(asked, {"sets": [name]})
                context.cache.keep_outcome(answers._second(asked, name, state), result.outcome)
    return len(cells)


def measure(folder: Path, toolkit: str) -> dict[str, float]:
    """Run the command; return the number of cells, its processor time in seconds, and its peak memory in MiB."""
    argv = [
        sys.executable,
        "-c",
        "from harness.cli import main; main()",
        "run",
        "-b",
        "nvrtc",
        "-t",
        toolkit,
        "-a",
        _TARGETS,
    ]
    running = subprocess.Popen(
        [*argv, "--device", "none", "--out", "records.jsonl", "--fresh"], cwd=folder, stderr=subprocess.PIPE
    )
    assert running.stderr is not None
    said = running.stderr.read().decode()
    _, status, used = os.wait4(running.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(said)
    records = (folder / "records.jsonl").read_bytes().splitlines()
    assert all(json.loads(line)["cached"] for line in records), "a compiler was asked"
    return {"cells": len(records), "processor_s": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss / 1024}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", default="1000,10000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--toolkit", default="12.9")
    parser.add_argument("--folder", type=Path, help="where to keep what was made, for another time")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="cumatrix-unchanged-") as name:
        for count in map(int, args.cells.split(",")):
            folder = (args.folder or Path(name)) / str(count)
            os.environ["CUMATRIX_CACHE"] = str(folder.absolute() / "cache")
            if not folder.is_dir():
                write_cases(folder / "cases", -(-count // _OF_A_CASE))
                os.chdir(folder)
                fill(Path("cases"), args.toolkit)
            rounds = [measure(folder, args.toolkit) for _ in range(args.rounds)]
            best = min(rounds, key=lambda one: one["processor_s"])
            print(
                "  ".join(
                    f"{key} {value:.2f}" if isinstance(value, float) else f"{key} {value}"
                    for key, value in best.items()
                ),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
