"""cuTile, NVIDIA's tile language for Python (cuda-tile 1.3 to 1.7 with its tileiras), for a chosen target.

A program runs as with ``python FILE`` (`harness.backends.python_program`) and compiles its kernels itself, with
``cuda.tile.compilation.export_kernel``, which 1.3 introduced. The cell's target replaces any GPU that the program
names.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.backends.python_program import Program, check_plain, left_out, outcome_of, signal_of, tidy
from harness.libraries import LIBRARIES
from harness.protocol.backend import Crashed, Job, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

FIRST = (1, 3)
_PARTS = ("cuda-tile", "nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm")
_ENDED = re.compile(r"Return code (-?\d+)")


class CutileBackend:
    """`harness.protocol.backend.Backend` for cuTile."""

    def prepare(self, setup: Setup) -> Ready:
        """Find the parts without importing cuTile.

        At import, cuTile creates a temporary folder, and uses the machine's tileiras if it lacks its own.
        """
        for name in [name for name in os.environ if name.startswith("CUDA_TILE_")]:
            del os.environ[name]
        try:
            tile, *parts = map(importlib.metadata.version, _PARTS)
        except importlib.metadata.PackageNotFoundError as error:
            raise Unavailable(f"this environment has no {error.name}: install cuda-tile[tileiras] there") from None
        if not setup.bundled:
            raise Unsupported(f"cuTile {tile} has its own compilers, and takes none of CUDA {setup.release}")
        if len({tuple(version.split(".")[:2]) for version in parts}) > 1:
            there = ", ".join(f"{name} {version}" for name, version in zip(_PARTS[1:], parts))  # noqa: B905 (Python 3.9)
            raise Unavailable(f"cuTile takes tileiras, nvcc and NVVM of one CUDA release, and there are {there}")
        self.name = f"cuTile {tile}"
        if tuple(map(int, tile.split(".")[:2])) < FIRST:
            raise Unsupported(f"{self.name} compiles for devices that are there only: export_kernel is in 1.3")
        sys.dont_write_bytecode = True  # for programs; the library's own modules have bytecode already
        return Ready(observed={"cutile": tile, "tileiras": parts[0], "python": platform.python_version()})

    def compile(self, setup: Setup, job: Job) -> None:
        """Run the program with no visible device."""
        job.device.update(virtual=True, compute_capability=job.compute_capability)
        self._check(job)
        with left_out(job, importlib.import_module("cuda.tile"), "launch"):
            self._build(job).note_failure()

    def execute(self, setup: Setup, job: Job) -> None:
        """Run the program on the device; its launches and its checks of results are part of the cell."""
        self._check(job)
        self._build(job).raise_on_device()

    def _check(self, job: Job) -> None:
        """Raise for options that cuTile does not support, and make cuTile write into the cell's folder only."""
        check_plain(job, "cuTile", "@ct.kernel(opt_level=...)")
        if job.options.get("arch", "given") == "implicit":
            raise Unsupported("without a target, cuTile builds for the device that it sees")
        made = f"sm_{job.arch.rstrip('af')}{'a' * (job.capability >= (9, 0))}"
        if job.target != made:
            raise Unsupported(f"{self.name} takes a compute capability, and makes {made} of it, not {job.target}")
        job.modules = LIBRARIES["cutile"].modules
        os.environ.update(CUDA_TILE_TEMP_DIR=str(job.scratch), CUDA_TILE_CACHE_DIR=str(job.scratch / "tile-cache"))

    def _build(self, job: Job) -> Program:
        """Run the program for the target; one refusal makes the cell rejected."""
        job.enter("compile")
        program = Program(job)
        with outcome_of(job, self.name), _crashes(job), _exports(job):
            program.run()
        if job.artifact is None:
            program.raise_failure(self.name)
            raise Unsupported(f"{job.source.name} compiles nothing: it has to call cuda.tile.compilation.export_kernel")
        return program


@contextmanager
def _exports(job: Job) -> Iterator[None]:
    """Make ``export_kernel`` generate a cubin for the cell's target, and keep the cubin.

    The files that the program names are still written.
    """
    module: Any = importlib.import_module("cuda.tile.compilation")
    original = module.export_kernel

    def export_kernel(kernel: Any, signatures: Any, output_file: Any, **options: Any) -> None:
        if options.get("output_format", "cubin") != "cubin":
            original(kernel, signatures, output_file, **options)
            return
        if job.artifact:
            job.complete()
        name = getattr(getattr(kernel, "_pyfunc", None), "__name__", None) or str(getattr(kernel, "__name__", "kernel"))
        export_options = {**options, "gpu_code": f"sm_{job.arch.rstrip('af')}", "output_format": "cubin"}
        shown = ", ".join(f"{key}={value!r}" for key, value in export_options.items())
        job.command.append(f"cuda.tile.compilation.export_kernel({name}, signatures, file, {shown})")
        buffer = io.BytesIO()
        original(kernel, signatures, buffer, **export_options)
        job.keep(buffer.getvalue(), "cubin")
        if hasattr(output_file, "write"):
            output_file.write(buffer.getvalue())
        else:
            Path(os.fsdecode(output_file)).write_bytes(buffer.getvalue())

    module.export_kernel = export_kernel
    try:
        yield
    finally:
        module.export_kernel = original
        if job.parts and job.artifact and job.artifact is not job.parts[0]:
            job.complete()


@contextmanager
def _crashes(job: Job) -> Iterator[None]:
    """Distinguish a signal that ended tileiras from a refusal."""
    try:
        yield
    except Exception as error:
        found = _ENDED.match(str(error))
        number = signal_of(int(found[1])) if found else 0
        if not number:
            raise
        job.say(tidy(str(error), job))
        raise Crashed(f"tileiras was ended by signal {number}", signal=number, stage="compile") from None


backend = CutileBackend()
