"""Baseline of engine.py: the same compilations in a plain loop, without the engine.

Any Python with the library can run the script. The first line of stdin is a JSON object with ``library`` (``nvrtc`` or ``cupy``) and the
toolkit's ``home`` and ``release``. Each further line is a cell: ``target``, ``source``, ``name`` and ``options``.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.backends.nvrtc import SUCCESS, Nvrtc, load
from harness.protocol.backend import Setup


class Plain:
    """NVRTC through its C interface."""

    def __init__(self, setup: Setup) -> None:
        self.nvrtc = Nvrtc(setup)

    def compile(self, cell: dict[str, Any]) -> bytes:
        options = [f"--gpu-architecture={cell['target']}", *cell["options"]]
        code, log, program = self.nvrtc.compile(cell["source"].encode(), cell["name"], options)
        if code != SUCCESS:
            raise RuntimeError(log)
        return self.nvrtc.get(program, "CUBIN")


class Cupy:
    """RawModule of CuPy (13.1 or later) for a device that does not exist, up to the loading of the cubin."""

    def __init__(self, setup: Setup) -> None:
        load(setup)
        from cupy._core import core
        from cupy.cuda import compiler

        self.core, self.compiler = core, compiler
        compiler._get_arch_for_options_for_nvrtc = compiler._get_arch_for_options_for_nvrtc.__wrapped__

        module = SimpleNamespace(load=_loaded, _set_mapping=lambda _mapping: None)
        compiler.function = SimpleNamespace(Module=lambda: module)

    def compile(self, cell: dict[str, Any]) -> bytes:
        self.compiler._get_arch = lambda: cell["target"].removeprefix("sm_")
        try:
            self.core.compile_with_cache(
                cell["source"], options=tuple(cell["options"]), prepend_cupy_headers=False, backend="nvrtc"
            )
        except _Loaded as loaded:
            return loaded.image
        raise RuntimeError("CuPy compiled without loading anything")


class _Loaded(Exception):
    """End of CuPy's compilation, raised instead of passing the cubin to the driver."""

    def __init__(self, image: bytes) -> None:
        self.image = image


def _loaded(image: bytes) -> None:
    raise _Loaded(image)


def main() -> None:
    """Compile the cell of each line of stdin and print a line of JSON; the first line names the toolkit."""
    jobs = json.loads(sys.stdin.readline())
    setup = Setup(home=Path(jobs["home"]), release=jobs["release"], headers=jobs["release"], include=[], tools=Path())
    compiler = Cupy(setup) if jobs["library"] == "cupy" else Plain(setup)
    print("ready", flush=True)
    for line in sys.stdin:
        cell = json.loads(line)
        started, used = time.perf_counter(), time.process_time()
        cubin = compiler.compile(cell)
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
        print(json.dumps({"seconds": seconds, "cpu": cpu, "sha256": hashlib.sha256(cubin).hexdigest()}), flush=True)
    os._exit(0)  # skip the exit handlers of libraries: they are not part of the comparison


if __name__ == "__main__":
    main()
