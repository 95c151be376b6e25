"""Measure the GPU tier of this machine: cells that load per second, compared with contexts that bare processes create per second.

Each cell creates its own context, so the driver's rate limits the tier:
python benchmarks/device.py --toolkit local wmma atomics
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_SECONDS = 4.0


def context() -> None:
    """Initialize the driver and create a context, as a cell does before loading."""
    cuda = ctypes.CDLL("libcuda.so.1")
    made = ctypes.c_void_p()
    for code in (cuda.cuInit(0), cuda.cuCtxCreate_v2(ctypes.byref(made), 0, 0)):
        if code:
            os._exit(1)
    os._exit(0)


def contexts(processes: int) -> float:
    """Return the contexts per second with this number of parallel processes. Each process creates a context and exits."""
    began, done, running = time.perf_counter(), 0, 0
    while True:
        while running < processes and time.perf_counter() - began < _SECONDS:
            if os.fork() == 0:
                context()
            running += 1
        if not running:
            return done / (time.perf_counter() - began)
        _, status = os.wait()
        if status:
            raise SystemExit("the driver creates no context")
        running, done = running - 1, done + 1


def tier(jobs: int, arguments: list[str], folder: Path) -> dict[str, float]:
    """Run the cells of the native targets; times in seconds."""
    trace = folder / "trace.json"
    command = [sys.executable, "-m", "cumatrix", "run", "-a", "native", "-j", str(jobs), "--no-cache", *arguments]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*command, "--trace", str(trace), "--out", str(folder / "results.jsonl")], check=False)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    spans = [each for each in json.loads(trace.read_text())["traceEvents"] if each["ph"] == "X"]
    on_device = [each["dur"] / 1e6 for each in spans if each["name"] == "device"]
    cores = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / seconds
    return {"seconds": seconds, "cores": cores, "loads": len(on_device), "on_device": sum(on_device)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=[])
    parser.add_argument("--toolkit", default="local")
    parser.add_argument("--backend", default="nvrtc,nvcc")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    rates = {processes: contexts(processes) for processes in (1, 4, options.jobs)}
    for processes, rate in rates.items():
        print(f"{processes} processes at a time: {rate:.1f} contexts in a second")
    with tempfile.TemporaryDirectory() as folder:
        chosen = ["-t", options.toolkit, "-b", options.backend, *options.cases]
        found = tier(options.jobs, chosen, Path(folder))
    rate = found["loads"] / found["seconds"]
    print(f"tier: {found['seconds']:.1f} s, {found['cores']:.1f} cores busy, {found['loads']} cells loaded")
    print(
        f"{rate:.1f} cells loaded in a second, {rate / max(rates.values()):.2f} of what the driver creates contexts for"
    )


if __name__ == "__main__":
    main()
