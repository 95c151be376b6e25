"""Measure the analysis of many cells: ``python benchmarks/analysis.py [--cells 100000]``."""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.analysis import cells_frame, changes, coverage, disagreements, statements
from harness.analysis.history import append, breaks, read_history, trend, unsteady
from harness.causes import causes_of
from harness.records import merge
from harness.report.api import badges
from harness.report.exports import matrix_markdown
from harness.report.feed import entries_of
from harness.report.junit import junit_xml
from harness.report.plots import pictures

TARGETS = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120 compute_80".split()
TOOLCHAINS = [
    (backend, library, toolkit)
    for backend, libraries in {"nvrtc": [""], "cupy-nvrtc": ["12.3.0", "13.0.0", "13.6.0"], "cupy-jitify": ["13.0.0", "13.6.0"],
                               "numba-cuda": ["0.15.0", "0.24.0"]}.items()
    for library in libraries
    for toolkit in ("11.8", "12.4", "12.9", "13.0", "13.5")
]  # fmt: skip
MESSAGE = "incomplete type is not allowed"


def generate(count: int, run: str) -> Iterator[dict[str, Any]]:
    """Generate realistic records, with rejections below sm_80 and a fault of one library; run ``b`` breaks one cell in fifty."""
    places = list(itertools.product(TOOLCHAINS, TARGETS))
    for number in range(count):
        case, place = divmod(number, len(places))
        (backend, library, toolkit), target = places[place]
        old = int(target.split("_")[1].rstrip("a")) < 80 and case % 3 == 0
        known = backend == "cupy-jitify" and library == "13.0.0" and case % 3 == 0
        unsupported = (toolkit >= "13" and target in ("sm_50", "sm_60", "sm_70")) or (
            toolkit == "11.8" and target in ("sm_100", "sm_120")
        )
        broken = run == "b" and number % 50 == 0 and not (old or known or unsupported)
        bad = old or known or broken
        status = "unsupported" if unsupported else "rejected" if bad else "built"
        name = f"topic-{case % 9}/case-{case}"
        yield {
            "schema": 1, "cell": f"{name} {backend}@{library} cuda{toolkit} {target}", "case": name, "title": "A case", "topic": f"topic-{case % 9}",
            "features": ["wmma"], "links": [], "variant": "", "backend": backend, "library": library, "target": target, "toolkit": toolkit,
            "environment": backend, "toolchain": {"requested": {"packages": {}, "library": library}, "observed": {"nvrtc": toolkit}},
            "status": status, "stage": None if unsupported else "compile" if bad else "assemble", "stages": ["compile", "assemble"],
            "verdict": "unsupported" if unsupported else "fail" if broken else "xfail" if known else "pass",
            "expected": {"status": "built", "stage": None, "diagnostic": None, "xfail": known, "reason": "", "link": ""},
            "reason": f"CUDA {toolkit} knows no {target}" if unsupported else "",
            "diagnostics": [{"severity": "error", "message": MESSAGE, "fingerprint": "990199bb28686f7c"}] if status == "rejected" else [],
            "artifact": None if status != "built" else {
                "format": "cubin", "target": target, "bytes": 1, "sha256": "",
                "kernels": [{"name": "k", "num_regs": 30 + case % 40, "shared_bytes": 1024, "spill_bytes": 0}]},
            "device": {}, "signal": None, "seconds": 0.1 + number % 7 / 10, "cached": False, "command": [], "log": "", "notes": [],
            "fingerprint": f"{number:x}", "run": run, "cumatrix": "0",
        }  # fmt: skip


def main() -> None:
    """Print the duration of each step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100_000)
    count = parser.parse_args().cells
    first = list(generate(count, "a"))
    plans = {
        run: {
            "schema": 1,
            "run": run,
            "environment": "",
            "started": f"2026-01-0{day}T00:00:00+00:00",
            "machine": {},
            "argv": [],
            "cells": [],
        }
        for day, run in enumerate("ab", 1)
    }
    merged = merge(first, [plans["a"]])
    print(f"{count:,} cells; seconds, and seconds of processor time")
    table = timed("cells_frame", lambda: cells_frame(merged))
    later = cells_frame(merge(generate(count, "b"), [plans["b"]]))
    found = timed("statements", lambda: statements(table))
    print(f"    {len(found):,} statements")
    print(f"    {len(timed('disagreements', lambda: disagreements(table))):,} disagreements")
    print(f"    {timed('changes', lambda: changes(table, later)).counts}")
    timed("coverage", lambda: coverage(table))
    timed("causes_of, each cell", lambda: [causes_of(record) for record in first])
    timed("pictures", lambda: pictures(table))
    timed("badges", lambda: badges(table))
    timed("junit_xml", lambda: junit_xml(merged))
    timed("matrix_markdown", lambda: matrix_markdown(table))
    with tempfile.TemporaryDirectory() as folder:
        append(Path(folder), first, [plans["a"]])
        timed("history: append a run", lambda: append(Path(folder), generate(count, "b"), [plans["b"]]))
        history = timed("history: read two runs", lambda: read_history(Path(folder)))
    print(f"    {len(timed('history: breaks', lambda: breaks(history))):,} broken cells")
    timed("history: unsteady", lambda: unsteady(history))
    timed("history: trend", lambda: trend(history))
    timed("history: entries of the feed", lambda: entries_of(history))


def timed(name: str, call: Callable[[], Any]) -> Any:
    """Call a function, print its duration, and return its result."""
    wall, used = time.perf_counter(), time.process_time()
    result = call()
    print(f"{name:<30} {time.perf_counter() - wall:7.2f} {time.process_time() - used:7.2f}", flush=True)
    return result


if __name__ == "__main__":
    main()
