"""CuTe DSL, CUTLASS's Python DSL (nvidia-cutlass-dsl 4.2 to 4.8), for a chosen target instead of the device's.

A program runs as with ``python FILE`` (`harness.backends.python_program`) and compiles its kernels itself, with
``cute.compile`` and tensors that need no device (``cutlass.cute.runtime.make_fake_compact_tensor``). CuTe DSL reads the
target from ``CUTE_DSL_ARCH`` and writes the cubin and PTX of each compilation into a folder. These files are the
artifact, whatever the compiled object reports.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

from harness.backends.python_program import Program, check_plain, outcome_of
from harness.libraries import LIBRARIES
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

DISTRIBUTION = "nvidia-cutlass-dsl"


class CuteDslBackend:
    """`harness.protocol.backend.Backend` for CuTe DSL."""

    def prepare(self, setup: Setup) -> Ready:
        """Find the library without importing it: it reads its settings, the target included, at import."""
        for name in [name for name in os.environ if name.startswith("CUTE_DSL_")]:
            del os.environ[name]
        try:
            self.version = importlib.metadata.version(DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            raise Unavailable(f"this environment has no {DISTRIBUTION}: install it there") from None
        if not setup.bundled:
            raise Unsupported(f"CuTe DSL {self.version} has its own compilers, and takes none of CUDA {setup.release}")
        sys.dont_write_bytecode = True  # for programs; the library's own modules have bytecode already
        return Ready(observed={"cute_dsl": self.version, "python": platform.python_version()})

    def compile(self, setup: Setup, job: Job) -> None:
        """Run the program for the target; one refusal makes the cell rejected."""
        job.device.update(virtual=True, compute_capability=job.compute_capability)
        self._build(job).note_failure()

    def execute(self, setup: Setup, job: Job) -> None:
        """Run the program on the device; its launches and its checks of results are part of the cell."""
        self._build(job).raise_on_device()

    def _build(self, job: Job) -> Program:
        check_plain(job, "CuTe DSL", "cute.compile(..., options=...)")
        if job.options.get("arch", "given") == "implicit":
            raise Unsupported("without CUTE_DSL_ARCH, CuTe DSL builds for the device that it sees")
        job.modules = LIBRARIES["cute-dsl"].modules
        dump = job.scratch / "dump"
        dump.mkdir()
        os.environ.update(
            CUTE_DSL_ARCH=f"sm_{job.arch}", CUTE_DSL_DUMP_DIR=str(dump), CUTE_DSL_NO_CACHE="1",
            CUTE_DSL_KEEP="cubin,ptx", CUTE_DSL_KEEP_CUBIN="1", CUTE_DSL_KEEP_PTX="1",
        )  # fmt: skip
        job.command.append(f"CUTE_DSL_ARCH=sm_{job.arch} python {job.source.name}")
        job.enter("compile")
        name = f"CuTe DSL {self.version}"
        with outcome_of(job, name):
            _load(job)
        program = Program(job)
        with outcome_of(job, name):
            program.run()
        _keep(job, dump)
        if job.artifact is None:
            program.raise_failure(name)
            raise Unsupported(f"{job.source.name} compiles nothing: it has to call cute.compile")
        return program


def _load(job: Job) -> None:
    """Import the library with the target in its settings.

    Up to 4.5, it looks for a driver after it has generated the code.
    """
    cutlass: Any = importlib.import_module("cutlass")
    importlib.import_module("cutlass.cute")
    if cuda := getattr(cutlass, "CUDA_VERSION", None):
        job.observed["cuda"] = f"{cuda.major}.{cuda.minor}"
    compiler = importlib.import_module("cutlass.base_dsl.compiler")
    if hasattr(compiler.Compiler, "_check_cuda_dependencies_once"):
        compiler.Compiler._check_cuda_dependencies_once = lambda *_arguments: None


def _keep(job: Job, dump: Path) -> None:
    """Keep the written files, oldest first: PTX for a virtual target, otherwise cubins."""
    kind = "ptx" if job.virtual else "cubin"
    made = sorted(dump.glob(f"*.{kind}"), key=lambda path: path.stat().st_mtime_ns)
    for path in made:
        job.keep(path.read_bytes(), kind)
        if len(made) > 1:
            job.complete()


backend = CuteDslBackend()
