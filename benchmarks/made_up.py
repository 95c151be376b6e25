"""Generated records, for benchmarks and tests of large reports."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast
from zlib import crc32

from harness.records import SCHEMA, Record
from harness.records.plan import Plan

_TARGETS = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90 sm_90a sm_100 compute_80".split()
_TOOLCHAINS = [
    *(("nvrtc", "", toolkit) for toolkit in ("11.8", "12.0", "12.4", "12.9", "13.0")),
    *(
        (b, v, t)
        for b in ("cupy-nvrtc", "cupy-jitify")
        for v in ("12.3.0", "13.6.0", "14.2.0")
        for t in ("12.4", "12.9")
    ),
    *(("numba", version, "12.4") for version in ("0.58.1", "0.59.0", "0.60.0", "0.68.1")),
    *(("numba-cuda", version, "12.9") for version in ("0.4.0", "0.15.0", "0.24.0", "0.30.4")),
]
_TOPICS = [
    "wmma",
    "cooperative",
    "shared-memory",
    "exceptions",
    "atomics",
    "cccl",
    "types",
    "jitify",
    "textures",
    "graphs",
]


def made_up(cells: int, *, run: str = "made-up", seed: int = 4) -> Iterator[Record]:
    """Generate records of `cells` different cells. The result depends only on the arguments.

    Parameters
    ----------
    cells : int
        Number of cells. Each case has 2,000: eight variants, 25 toolchains and ten targets.
    run : str
        Name of the run.
    seed : int
        Seed of the outcomes.
    """
    return islice(_all(random.Random(seed), run), cells)


def made_up_plan(records: list[Record], *, started: str = "2026-01-01T12:00:00+00:00") -> Plan:
    """Return the plan of a run with these records."""
    keys = ("cell", "case", "variant", "backend", "library", "toolkit", "target", "environment", "title", "topic")
    return {
        "schema": 1,
        "run": records[0]["run"],
        "environment": "made-up",
        "started": started,
        "machine": {"os": "Linux", "python": "3.11.9", "machine": "x86_64", "cpu": "A CPU", "cpus": 2},
        "argv": ["run"],
        "cells": [{key: dict(record)[key] for key in keys} for record in records],
    }


def _all(random: random.Random, run: str) -> Iterator[Record]:
    number = 0
    while True:
        topic = _TOPICS[number % len(_TOPICS)]
        case = f"{topic}/case-{number:03}"
        number += 1
        for label in range(8):
            for backend, library, toolkit in _TOOLCHAINS:
                for target in _TARGETS:
                    made = _record(random, run, case, topic, f"size={16 << label}", backend, library, toolkit, target)
                    yield cast("Record", made)


def _record(
    random: random.Random, run: str, case: str, topic: str, variant: str,
    backend: str, library: str, toolkit: str, target: str,
) -> dict[str, Any]:  # fmt: skip
    cc = int(target.split("_")[1].rstrip("a"))
    name = f"{backend}@{library}" if library else backend
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "cell": f"{case}[{variant}] {name} cuda{toolkit} {target}",
        "case": case,
        "title": f"What {case.replace('/', ' ')} needs of the compiler",
        "topic": topic,
        "features": [topic],
        "links": ["https://example.com/upstream/1"],
        "variant": variant,
        "backend": backend,
        "library": library,
        "target": target,
        "toolkit": toolkit,
        "environment": f"{backend}{library}",
        "toolchain": {
            "requested": {"packages": {"python": "3.11.9"}, "library": library, "toolkit": toolkit, "headers": toolkit},
            "observed": {"nvrtc": toolkit, "ptxas": f"{toolkit}.131", "python": "3.11.9"},
        },
        "status": "built",
        "stage": "assemble",
        "stages": ["compile", "assemble"],
        "verdict": "pass",
        "expected": {"status": "built", "stage": None, "diagnostic": None, "xfail": False, "reason": "", "link": ""},
        "reason": "",
        "diagnostics": [],
        "artifact": None,
        "device": {} if backend == "nvrtc" else {"virtual": True, "compute_capability": f"{cc // 10}.{cc % 10}"},
        "signal": None,
        "seconds": round(random.uniform(0.03, 2.0), 4),
        "cached": False,
        "command": [f"nvrtcCompileProgram --gpu-architecture={target} -DSIZE={variant[5:]} -std=c++17"],
        "log": "",
        "notes": [],
        "fingerprint": f"{random.getrandbits(256):064x}",
        "run": run,
        "cumatrix": "0.1.0",
    }
    if (toolkit.startswith("13") and cc < 75) or (toolkit < "12.8" and cc >= 100):
        empty: dict[str, Any] = {
            "status": "unsupported",
            "verdict": "unsupported",
            "stage": None,
            "stages": [],
            "command": [],
        }
        return {**record, **empty, "reason": f"CUDA {toolkit} knows no {target}", "fingerprint": "", "seconds": 0.0}
    chance = random.random()
    if chance < 0.75:
        kernel = {"name": "kernel", "num_regs": random.randrange(8, 128), "shared_bytes": 1 << random.randrange(8, 15)}
        kernel |= {"local_bytes": 0, "const_bytes": 360, "spill_bytes": None, "stack_bytes": 0}
        artifact = {"format": "cubin", "target": target, "bytes": random.randrange(2000, 90000)}
        return {**record, "artifact": {**artifact, "sha256": f"{random.getrandbits(256):064x}", "kernels": [kernel]}}
    # As in real runs, four of five rejections repeat the message of another.
    kind = crc32(f"{case} {variant} {name}".encode())
    line = 5 + kind % 85
    message = f'no instance of overloaded function "f{kind % 300}" matches the argument list'
    diagnostic = {"severity": "error", "code": "304", "message": message, "file": "kernel.cu", "line": line}
    expected = {**record["expected"], "status": "rejected", "reason": "needs compute capability 8.0"}
    return {
        **record,
        "status": "rejected",
        "stage": "compile",
        "stages": ["compile"],
        "verdict": "fail" if chance > 0.99 else "xfail" if chance > 0.97 else "pass",
        "expected": record["expected"] if chance > 0.99 else {**expected, "xfail": chance > 0.97},
        "diagnostics": [{**diagnostic, "fingerprint": f"{kind:016x}"}],
        "log": f"kernel.cu({line}): error: {message}\n" + "    argument types are: (float, float)\n" * 28,
    }
