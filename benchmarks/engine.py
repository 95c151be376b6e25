"""Measure the cost of the engine.

The script compares a cold engine with a bare loop and with a fresh process per cell, and an unchanged run with a cold run. It measures
all sides in one run, alternating cell by cell, and reports the median of the ratios of neighbours. A machine that slows down therefore
slows down both sides. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import __version__
from harness.backends import BACKENDS
from harness.backends.nvrtc import macros
from harness.engine.context import RunContext
from harness.engine.environment import Environment, look
from harness.engine.executor import Run, ThreadExecutor
from harness.engine.plan import plan
from harness.engine.prepared import PreparedCell
from harness.engine.toolchain import clean_environment
from harness.errors import CumatrixError, PartUnavailable
from harness.model import Cell, Status
from harness.model.target import parse_targets
from harness.records import this_machine
from harness.toolkits import ToolkitStore, parse_toolkits

ROOT = Path(__file__).resolve().parents[1]

AIM = 1.15
"""Cold throughput of the engine may cost this much of the bare loop's time."""

CASE = "wmma/fragments"
_VARIANTS = {"nvrtc": "given", "cupy-nvrtc": "implicit"}
_LIBRARIES = {"nvrtc": "nvrtc", "cupy-nvrtc": "cupy"}


def main() -> int:
    options = _arguments()
    results: list[dict[str, Any]] = []
    try:
        for backend in options.backend.split(","):
            python = options.python if backend != "nvrtc" else None
            results.append(throughput(backend, python, options))
            show_throughput(results[-1])
        if not options.no_commands:
            results.append(commands(options))
            show_commands(results[-1])
    except CumatrixError as error:
        print(f"engine.py: {error}", file=sys.stderr)
        return error.exit_code
    again = " ".join(["python", "benchmarks/engine.py", *sys.argv[1:]])
    print(f"\nrepeat with: {again}")
    if options.json:
        value = {"command": again, "cumatrix": __version__, "machine": this_machine(), "results": results}
        Path(options.json).write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--backend", default="nvrtc", help="nvrtc, cupy-nvrtc or both, with a comma (default: nvrtc)")
    parser.add_argument("--python", help="interpreter of an environment with CuPy 13.1 or later, for cupy-nvrtc")
    parser.add_argument("--toolkit", default="12.4", help="an installed CUDA release (default: 12.4)")
    parser.add_argument("--target", default="sm_70,sm_75,sm_80,sm_86,sm_89,sm_90", help="architectures")
    parser.add_argument("--fragments", default="half,half-32x8x16", help=f"variants of the case {CASE}")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of each measurement (default: 5)")
    parser.add_argument("--no-commands", action="store_true", help="leave out the whole commands")
    parser.add_argument("--json", metavar="FILE", help="write every measurement to FILE")
    return parser.parse_args()


def throughput(backend: str, python: str | None, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the engine, the bare loop and fresh processes, alternating cell by cell."""
    store, environment = ToolkitStore(), look(python)
    context = RunContext(environment, store, None)
    cells = _cells(backend, environment, options)
    with Run(context) as run:
        toolchain = run.resolver.toolchain(cells[0].toolchain)
        if toolchain.problem:
            raise PartUnavailable(toolchain.problem.reason)
        asks = [_bare_job(run, cell) for cell in cells]
    assert toolchain.toolkit is not None
    jobs = {"library": _LIBRARIES[backend], "home": str(toolchain.toolkit.home), "release": toolchain.toolkit.release}
    rounds = []
    for number in range(options.rounds + 1):
        measured = _round(environment, store, cells, asks, jobs)
        if number:  # the first round only loads the files into memory
            rounds.append(measured)
    pairs = [
        (engine, loop, fresh)
        for r in rounds
        for engine, loop, fresh in list(zip(r["engine"], r["loop"], r["fresh"], strict=True))[1:]
    ]
    count = len(cells)
    return {
        "measurement": "throughput",
        "backend": backend,
        "library": cells[0].toolchain.library,
        "toolkit": options.toolkit,
        "cells": [cell.id for cell in cells],
        "rounds": rounds,
        "milliseconds_a_cell": {
            "engine": _middle(1000 * engine for engine, _, _ in pairs),
            "engine, its start shared out": _middle(1000 * sum(r["engine"]) / count for r in rounds),
            "bare loop": _middle(1000 * loop for _, loop, _ in pairs),
            "bare loop, its start shared out": _middle(1000 * _whole_loop(r) / count for r in rounds),
            "fresh process": _middle(1000 * fresh for _, _, fresh in pairs),
        },
        "ratios": {
            "engine / bare loop": _middle(engine / loop for engine, loop, _ in pairs),
            "engine / bare loop, starts included": _middle(sum(r["engine"]) / _whole_loop(r) for r in rounds),
            "engine / bare loop, processor time": _middle(
                sum(r["engine_cpu"][1:]) / sum(r["loop_cpu"][1:]) for r in rounds
            ),
            "engine / fresh process a cell": _middle(engine / fresh for engine, _, fresh in pairs),
        },
        "aim": AIM,
    }


def _round(
    environment: Environment,
    store: ToolkitStore,
    cells: Sequence[Cell],
    asks: Sequence[dict[str, Any]],
    jobs: dict[str, Any],
) -> dict[str, Any]:
    """Compile every cell on each side; return the seconds per cell. The engine's first cell includes its start."""
    run = Run(RunContext(environment, store, None))
    measured: dict[str, Any] = {side: [] for side in ("engine", "loop", "fresh", "engine_cpu", "loop_cpu")}
    loop = Bare(environment.python, jobs)
    measured["loop_start"] = loop.start
    try:
        for place, (cell, ask) in enumerate(zip(cells, asks, strict=True)):
            sides = ["engine", "loop"] if place % 2 else ["loop", "engine"]
            digests = {}
            for side in sides:
                if side == "engine":
                    started, used = time.perf_counter(), _processor_time(run)
                    outcome = run.result(cell).outcome
                    measured["engine"].append(time.perf_counter() - started)
                    measured["engine_cpu"].append(_processor_time(run) - used)
                    if outcome.status is not Status.BUILT or outcome.artifact is None:
                        words = outcome.reason or outcome.log[:300]
                        raise SystemExit(f"engine.py: {cell.id} is {outcome.status}: {words}")
                    digests[side] = outcome.artifact.sha256
                else:
                    answer = loop.compile(ask)
                    measured["loop"].append(answer["seconds"])
                    measured["loop_cpu"].append(answer["cpu"])
                    digests[side] = answer["sha256"]
            if digests["engine"] != digests["loop"]:
                raise SystemExit(f"engine.py: {cell.id}: the engine and the bare loop built different cubins")
    finally:
        loop.close()
        run.close()
    for ask in asks:
        started = time.perf_counter()
        single = Bare(environment.python, jobs)
        single.compile(ask)
        single.close()
        measured["fresh"].append(time.perf_counter() - started)
    return measured


class Bare:
    """A process of bare.py."""

    def __init__(self, python: str, jobs: dict[str, Any]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        home = self.folder.name
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [python, "-s", str(ROOT / "benchmarks" / "bare.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**clean_environment(jobs["home"]), "HOME": home, "CUPY_CACHE_DIR": f"{home}/cupy"},
        )
        self._ask(jobs)
        self.start = time.perf_counter() - began

    def compile(self, cell: dict[str, Any]) -> dict[str, Any]:
        """Compile a cell; return wall time and processor time in seconds, and the hash of the cubin."""
        return json.loads(self._ask(cell))

    def close(self) -> None:
        """End the process and wait for it."""
        self.process.communicate()
        self.folder.cleanup()

    def _ask(self, value: dict[str, Any]) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("engine.py: the bare loop failed; what it said stands above")
        return line


def commands(options: argparse.Namespace) -> dict[str, Any]:
    """Measure whole commands: ``cumatrix run`` with an empty cache, and the same run again."""
    argv = [
        sys.executable,
        "-c",
        "from harness.cli import main; main()",
        "run",
        "wmma",
        "-b",
        "nvrtc",
        "-t",
        options.toolkit,
    ]
    rounds = []
    for number in range(options.rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "CUMATRIX_CACHE": folder}
            row: dict[str, Any] = {}
            for name in ("cold", "unchanged"):
                out = Path(folder, f"{name}.jsonl")
                row[name] = _timed([*argv, "--cases", str(ROOT / "cases"), "--out", str(out)], env)
                row[f"{name}_records"] = len(out.read_text("utf-8").splitlines())
            if number:
                rounds.append(row)
    return {
        "measurement": "commands",
        "command": " ".join(["cumatrix", *argv[3:]]),
        "cells": rounds[0]["cold_records"],
        "rounds": rounds,
        "seconds": {name: _middle(r[name] for r in rounds) for name in ("cold", "unchanged")},
        "ratios": {"unchanged / cold": _middle(r["unchanged"] / r["cold"] for r in rounds)},
    }


def _cells(backend: str, environment: Environment, options: argparse.Namespace) -> list[Cell]:
    from harness.cases.discovery import load_cases

    cases = load_cases(ROOT / "cases", (CASE,))
    fragments = options.fragments.split(",")
    planned = plan(
        cases, [BACKENDS[backend]], parse_toolkits(options.toolkit), parse_targets(options.target), environment
    )
    chosen = [
        cell
        for cell in planned
        if cell.variant.labels["fragment"] in fragments and cell.variant.labels["arch"] == _VARIANTS[backend]
    ]
    if len(chosen) < 3:
        raise SystemExit("engine.py: too few cells to compare: name fragments that exist, and more targets")
    return chosen


def _bare_job(run: Run, cell: Cell) -> dict[str, Any]:
    """Return the bare loop's job for a cell: the same source with the same options."""
    prepared = run.resolver.resolve(cell)
    assert isinstance(prepared, PreparedCell), prepared.outcome.reason
    job = prepared.job
    options = [*macros(job.definitions), *(f"-I{folder}" for folder in job.include)]
    text = job.source.read_text("utf-8")
    return {"target": str(cell.target), "name": job.source.name, "source": text, "options": options}


def _timed(argv: Sequence[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True, env=env)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(f"engine.py: cumatrix run ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return seconds


def _whole_loop(measured: dict[str, Any]) -> float:
    return measured["loop_start"] + sum(measured["loop"])


def _processor_time(run: Run) -> float:
    """Return the processor time of this process, the run's fork server and its finished children, in seconds."""
    used = time.process_time()
    assert isinstance(run.executor, ThreadExecutor)
    for fork_server in run.executor.runners[0].fork_servers.running.values():
        keeper = fork_server.process.pid  # the fork server is its child
        for pid in (keeper, *Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


def _middle(values: Any) -> float:
    return round(statistics.median(values), 4)


def show_throughput(result: dict[str, Any]) -> None:
    library = f" {result['library']}" if result["library"] else ""
    print(f"\n{result['backend']}{library}, CUDA {result['toolkit']}: {len(result['cells'])} cells, "
          f"median of {len(result['rounds'])} rounds")  # fmt: skip
    for name, value in result["milliseconds_a_cell"].items():
        print(f"  {name:<40} {value:9.1f} ms a cell")
    for name, value in result["ratios"].items():
        print(f"  {name:<40} {value:9.3f}")
    met = result["ratios"]["engine / bare loop"] <= result["aim"]
    print(f"  aim: engine / bare loop at most {result['aim']}: {'met' if met else 'missed'}")


def show_commands(result: dict[str, Any]) -> None:
    print(f"\n{result['command']}: {result['cells']} cells, median of {len(result['rounds'])} rounds")
    for name, value in result["seconds"].items():
        print(f"  {name:<40} {value:9.2f} s")
    for name, value in result["ratios"].items():
        print(f"  {name:<40} {value:9.3f}")


if __name__ == "__main__":
    sys.exit(main())
