"""What Jitify's table of headers costs a cell, in seconds of processor time; run with an interpreter that has CuPy.

    PYTHONPATH=. ENVIRONMENT/bin/python benchmarks/jitify.py --toolkit 12.9

Each program is compiled in a forked child, through CuPy's NVRTC and through its Jitify: with the whole table of headers, and
with those alone that it includes, directly or not, whether or not a condition leaves them out. Without a table for this
toolkit the first start takes a minute or more.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from harness.backends.cupy import jitify_headers
from harness.backends.cupy.backend import CupyBackend
from harness.protocol.backend import Job, Rejected, Setup

_BODY = 'extern "C" __global__ void scale(float *a) { a[threadIdx.x] *= 2; }\n'
_PROGRAMS = {"an empty kernel": _BODY, "with mma.h": "#include <mma.h>\n" + _BODY}
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
# The second stands before every program from CuPy 13.0 on.
_ALWAYS = [b"jitify_preinclude.h", b"cupy/cuda_workaround.h"]


def included(table: dict[bytes, bytes], source: str) -> dict[bytes, bytes]:
    """The part of a table that a program includes."""
    found: dict[bytes, bytes] = {}
    names = _ALWAYS + _INCLUDE.findall(source.encode())
    while names:
        name = names.pop()
        if name in table and name not in found:
            found[name] = table[name]
            names += _INCLUDE.findall(table[name])
    return found


def measured(work: Callable[[], str]) -> tuple[float, str]:
    """Seconds of processor time that a child needs for something, and what it answers."""
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
    table: dict[bytes, bytes] = {}
    hand = jitify_headers.hand
    jitify_headers.hand = lambda _, found: table.update(found)
    jitify, nvrtc = CupyBackend(True), CupyBackend(False)
    jitify.prepare(setup)
    nvrtc.__dict__ |= {**jitify.__dict__, "jitify": False}

    def cubin(backend: CupyBackend, source: str, headers: dict[bytes, bytes]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            job = Job("benchmark", Path(folder, "kernel.cu"), {}, {}, asked.target, {}, include, scratch=Path(folder))
            job.source.write_text(source)
            hand(jitify.jitify_module, headers)
            try:
                backend.compile(setup, job)
            except Rejected:
                return ""
            assert job.artifact is not None
            return hashlib.sha256(Path(job.artifact.path).read_bytes()).hexdigest()

    for name, source in _PROGRAMS.items():
        part = included(table, source)
        sides = {"NVRTC": (nvrtc, {}), f"all {len(table)}": (jitify, table), f"its {len(part)}": (jitify, part)}
        best, cubins = dict.fromkeys(sides, float("inf")), {}
        for _ in range(asked.rounds):
            for side, (backend, headers) in sides.items():
                seconds, cubins[side] = measured(partial(cubin, backend, source, headers))
                best[side] = min(best[side], seconds)
        by_jitify = set(list(cubins.values())[1:])
        if len(by_jitify) != 1:
            raise SystemExit(f"{name}: not the same cubin with all headers and with its own")
        # Refused by both sides: CuPy's headers and the toolkit's do not fit.
        refused = "" if by_jitify.pop() else "refused"
        print(name, *(f"{side} {seconds:.2f} s" for side, seconds in best.items()), refused, sep="   ", flush=True)


if __name__ == "__main__":
    main()
