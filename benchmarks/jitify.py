"""Measure the cost of a Jitify cell and an NVRTC cell in seconds of processor time. Requires an interpreter with CuPy.

    PYTHONPATH=. ENVIRONMENT/bin/python benchmarks/jitify.py --toolkit 12.9

The script compiles each program in a forked child, with CuPy's NVRTC and with its Jitify. Jitify runs unchanged, without a precompiled
header (as for a single cell), and with a precompiled header of CuPy's common includes. All three must give the same status, artifact, log
and command. Without a table for this toolkit, the first start takes half a minute.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from harness.backends.cupy.backend import CupyBackend
from harness.protocol.backend import Job, Rejected, Setup

_BODY = 'extern "C" __global__ void scale(float *a) {{ {} }}\n'
_PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "an empty kernel": (_BODY.format("a[threadIdx.x] *= 2;"), {}),
    "with mma.h": ("#include <mma.h>\n" + _BODY.format("a[threadIdx.x] *= 2;"), {}),
    "with cooperative_groups.h": (
        "#include <cooperative_groups.h>\n" + _BODY.format("cooperative_groups::this_grid().sync();"),
        {},
    ),
    "macros, a loop unrolled": (
        _BODY.format("\n#pragma unroll 4\nfor (int i = 0; i < N; i++) a[i] = (float)FACTOR;\n"),
        {"N": 8, "FACTOR": "2 * 3"},
    ),
    "a macro that headers use": (_BODY.format("a[threadIdx.x] *= noexcept(1) + 1;"), {"noexcept": "sizeof"}),
    "a macro that builtin headers use": (
        "__device__ int cudaMemcpyDefault;\n" + _BODY.format("*a = cudaMemcpyDefault;"),
        {"cudaMemcpyDefault": "other"},
    ),
    "a line that Jitify moves": ('\nstatic_assert(__LINE__ == 3, "");\n' + _BODY.format(""), {}),
    "a pragma in a string": (
        'static_assert(sizeof(R"(\n#pragma unroll\n)") == 17, "");\n' + _BODY.format(""),
        {},
    ),
    "a pragma in a macro": (
        "#define F \\\n#pragma unroll\n" + _BODY.format("F\nfor (int i = 0; i < 8; i++) a[i] = i;"),
        {},
    ),
    "refused": ("#define N 5\n" + _BODY.format("\nint unused;\na[threadIdx.x] *= missing;\n"), {"N": 8}),
    "refused in a macro": (_BODY.format("*a = N;"), {"N": "missing + 1"}),
    "refused in a template": (
        "template <class T> __device__ T of(T t) { return t.x; }\n" + _BODY.format("of(*a);"),
        {},
    ),
    "refused by ptxas": (_BODY.format("__shared__ float b[12289]; b[(int)*a] = *a; __syncthreads(); *a = b[1];"), {}),
}


def measured(work: Callable[[], str]) -> tuple[float, str]:
    """Run a function in a child; return its processor time in seconds, and its result."""
    reader, writer = os.pipe()
    before = os.times()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, work().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system, said


def outcome(backend: CupyBackend, setup: Setup, target: str, source: str, definitions: dict[str, Any]) -> str:
    """Compile a program with a backend; return the outcome as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"], tempfile.tempdir = folder, folder
        path = Path(folder)
        job = Job("benchmark", path / "kernel.cu", {}, definitions, target, {}, setup.include, scratch=path)
        job.source.write_text(source)
        status, artifact = "built", ""
        try:
            backend.compile(setup, job)
            assert job.artifact is not None
            artifact = hashlib.sha256(Path(job.artifact.path).read_bytes()).hexdigest()
        except Rejected as refused:
            status = f"rejected ({refused.stage})"
        # Cut the random folder of each program from the log.
        logs = ["\n".join(line.partition(".cubin.cu")[2] or line for line in log.splitlines()) for log in job.logs]
        return json.dumps([status, artifact, logs, job.command, job.notes, job.stages])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--toolkit", default="12.9", help="a CUDA release that is installed")
    parser.add_argument(
        "--home", type=Path, default=Path.home() / ".local/share/cumatrix", help="cumatrix's data folder"
    )
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    home = asked.home / "toolkits" / asked.toolkit
    include = [str(folder) for folder in (home / "include", home / "include" / "cccl") if folder.is_dir()]
    setup = Setup(home, asked.toolkit, asked.toolkit, include, asked.home / "tools")
    folder = tempfile.TemporaryDirectory()
    tempfile.tempdir = folder.name
    early, plain, nvrtc = CupyBackend(True), CupyBackend(True), CupyBackend(False)
    early.prepare(setup)
    plain.__dict__ |= {**early.__dict__, "before_jitify": None}
    nvrtc.__dict__ |= {**plain.__dict__, "jitify": False}
    if early.before_jitify is None:
        raise SystemExit(f"NVRTC {asked.toolkit} has no precompiled headers, or CuPy puts nothing before programs")
    job = Job("benchmark", Path("kernel.cu"), {}, {"N": 1}, asked.target, {}, include)
    best: dict[str, dict[str, float]] = {name: {} for name in _PROGRAMS}
    outcomes: dict[str, dict[str, str]] = {name: {} for name in _PROGRAMS}

    def measure(side: str, backend: CupyBackend) -> None:
        for name, (source, definitions) in _PROGRAMS.items():
            work = partial(outcome, backend, setup, asked.target, source, definitions)
            for _ in range(asked.rounds):
                seconds, outcomes[name][side] = measured(work)
                best[name][side] = min(best[name].get(side, seconds), seconds)

    measure("NVRTC", nvrtc)
    measure("Jitify as CuPy has it", plain)
    # A single cell gets no precompiled header.
    early.ahead(setup, job, 0, lambda: None)
    measure("Jitify, alone", early)
    before = os.times()
    early.ahead(setup, job, 1, lambda: None)
    after = os.times()
    print(f"the header: {after.children_user - before.children_user:.2f} s", flush=True)
    measure("Jitify", early)
    differ = False
    for name, said in outcomes.items():
        status = json.loads(said["Jitify"] or '["no answer"]')[0]
        print(name, status, *(f"{side} {seconds:.2f} s" for side, seconds in best[name].items()), sep="   ", flush=True)
        for side in ("Jitify, alone", "Jitify"):
            if said[side] != said["Jitify as CuPy has it"]:
                differ = True
                print(said["Jitify as CuPy has it"], said[side], sep="\n")
    folder.cleanup()
    sys.exit("not the same as CuPy has it" if differ else 0)


if __name__ == "__main__":
    main()
