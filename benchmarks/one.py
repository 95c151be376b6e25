"""Compile programs with NVRTC or a library in a plain process: the baseline of peers.py. Each argument is a JSON file with a program.

NVRTC compiles the programs in this process or, with ``--forked`` as the first argument, each program in a forked child. A library is
loaded once and compiles each program in a forked child, because libraries cache compiled programs. The script does nothing else for
isolation, and writes no records.

It prints ``built`` or ``refused`` for each program, and exits with 1 if a program is refused.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.backends import BACKENDS
from harness.backends.nvrtc import SUCCESS, Nvrtc
from harness.protocol.backend import Job, Rejected, Unavailable
from harness.protocol.messages import CellJob, Setup


def nvrtc_of(ask: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    """Load NVRTC; return a function that compiles a program and returns whether it was built."""
    home, release = Path(ask["home"]), ask["release"]
    nvrtc = Nvrtc(Setup(home=home, release=release, headers=release, include=[], tools=Path()))

    def compile_one(ask: dict[str, Any]) -> bool:
        source = Path(ask["source"])
        code, _, program = nvrtc.compile(source.read_bytes(), str(source), ask["options"])
        return code == SUCCESS and bool(nvrtc.get(program, "CUBIN") or nvrtc.get(program, "PTX"))

    return compile_one


def forked(compile_one: Callable[[dict[str, Any]], bool]) -> Callable[[dict[str, Any]], bool]:
    """Return a function that compiles each program in a forked child."""

    def in_child(ask: dict[str, Any]) -> bool:
        child = os.fork()
        if not child:
            code = 70
            try:
                code = 0 if compile_one(ask) else 1
            finally:
                os._exit(code)
        return os.waitpid(child, 0)[1] == 0

    return in_child


def library_of(ask: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    """Load a library; return a function that compiles a program in a forked child and returns whether it was built."""
    backend = importlib.import_module(f"harness.backends.{BACKENDS[ask['backend']].module}").backend
    setup = Setup.from_line(ask["setup"])
    ready = backend.prepare(setup)
    if ready.status:
        raise Unavailable(ready.reason)

    def compile_one(ask: dict[str, Any]) -> bool:
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1] == 0
        code = 70
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                os.environ.update(HOME=folder, TMPDIR=folder)
                tempfile.tempdir = folder
                asked = CellJob.from_line(ask["job"])
                backend.compile(setup, Job(**vars(asked), scratch=Path(folder)))
                code = 0
        except Rejected:
            code = 1
        finally:
            os._exit(code)

    return compile_one


def main() -> None:
    """Compile the programs of the arguments one after another."""
    compile_one, failed = None, False
    apart = sys.argv[1] == "--forked"
    for path in map(Path, sys.argv[1 + apart :]):
        ask = json.loads(path.read_text("utf-8"))
        if compile_one is None:
            compile_one = (library_of if "backend" in ask else nvrtc_of)(ask)
            compile_one = forked(compile_one) if apart else compile_one
        built = compile_one(ask)
        failed = failed or not built
        print(path.stem, "built" if built else "refused", flush=True)
    sys.stdout.flush()
    os._exit(int(failed))


if __name__ == "__main__":
    main()
