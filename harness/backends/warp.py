"""NVIDIA Warp (warp-lang 1.9 to 1.19), for a chosen target instead of the device's.

A program runs as with ``python FILE`` (`harness.backends.python_program`). Warp groups its kernels into modules, and
``wp.compile_aot_module``, which 1.9 introduced, then compiles them module by module: Warp generates CUDA C++, and its
built-in NVRTC compiles that to a cubin or PTX.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import sys
from typing import Any

from harness.backends.python_program import Program, check_plain, errors_in_log, left_out, outcome_of, passed
from harness.libraries import LIBRARIES
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

FIRST = (1, 9)


class WarpBackend:
    """`harness.protocol.backend.Backend` for Warp."""

    def prepare(self, setup: Setup) -> Ready:
        """Import Warp without initializing it: each cell initializes it, and Warp then looks for devices."""
        for name in [name for name in os.environ if name.startswith("WARP_")]:
            del os.environ[name]
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or importing NumPy starts threads before cells are forked
        try:
            version = importlib.metadata.version("warp-lang")
        except importlib.metadata.PackageNotFoundError:
            raise Unavailable("this environment has no warp-lang: install it there") from None
        if not setup.bundled:
            raise Unsupported(f"Warp {version} has its own NVRTC, and takes none of CUDA {setup.release}")
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < FIRST:
            raise Unsupported(f"Warp {version} compiles for devices that are there only: compile_aot_module is in 1.9")
        self.name = f"Warp {version}"
        importlib.import_module("warp")
        sys.dont_write_bytecode = True  # for programs; the library's own modules have bytecode already
        return Ready(observed={"warp": version, "python": platform.python_version()})

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile every module of the program with no visible device."""
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        self._start(job)
        job.device.update(virtual=True, compute_capability=job.compute_capability)
        with left_out(job, importlib.import_module("warp"), "launch", "launch_tiled"):
            self._build(job).note_failure()

    def execute(self, setup: Setup, job: Job) -> None:
        """Run the program on the device; its launches and its checks of results are part of the cell."""
        self._start(job)
        self._build(job).raise_on_device()

    def _start(self, job: Job) -> None:
        """Check the options, and initialize Warp for the target."""
        import warp as wp

        job.modules = LIBRARIES["warp"].modules
        check_plain(job, "Warp", "wp.set_module_options")
        if job.options.get("arch", "given") == "implicit":
            raise Unsupported("without a target, Warp builds for the device that it sees")
        if suffix := job.arch[len(job.arch.rstrip("af")) :]:
            if not hasattr(wp.config, "cuda_arch_suffix"):
                raise Unsupported(f"{self.name} takes a compute capability, and makes no {job.target} of it")
            wp.config.cuda_arch_suffix = suffix
        wp.config.kernel_cache_dir = str(job.scratch / "warp-cache")
        wp.config.quiet = True
        wp.init()
        found = getattr(_context().runtime, "toolkit_version", None)
        job.observed["cuda"] = ".".join(map(str, found)) if found else ""

    def _build(self, job: Job) -> Program:
        """Run the program, then compile its modules.

        One refusal makes the cell rejected, and the other modules are still compiled.
        """
        job.enter("compile")
        program = Program(job)
        with outcome_of(job, self.name):
            try:
                program.run()
            except Exception as error:
                if not passed(error, "get_device"):  # there is no device, which says nothing about the kernels
                    raise
                program.failure = error
        modules = _modules(program)
        if not modules:
            program.raise_failure(self.name)
            raise Unsupported(f"{job.source.name} defines no kernel of Warp's")
        refused, built = list[str](), list[str]()
        for module in modules:
            names = ", ".join(each.key for each in module.kernels.values())
            try:
                self._compile(job, module, names)
            except Rejected as error:
                refused.append(names)
                refusal = error
            else:
                built.append(names)
                if len(modules) > 1:
                    job.complete()
        if refused and len(modules) > 1:
            job.notes.append(f"refused: {', '.join(refused)}; built: {', '.join(built) or 'none'}")
        if refused:
            program.note_failure()
            raise refusal
        return program

    def _compile(self, job: Job, module: Any, names: str) -> None:
        """Compile one of Warp's modules: all of its kernels, forward and backward."""
        import warp as wp

        number, kind = int(job.arch.rstrip("af")), "ptx" if job.virtual else "cubin"
        folder = job.scratch / "made" / str(len(job.command))
        folder.mkdir(parents=True)
        job.command.append(f"wp.compile_aot_module(module of {names}, arch={number}, use_ptx={job.virtual})")
        with outcome_of(job, self.name), errors_in_log(job):
            wp.compile_aot_module(module, arch=number, module_dir=str(folder), use_ptx=job.virtual)
        (made,) = folder.glob(f"*.{kind}")
        job.keep(made.read_bytes(), kind)


def _context() -> Any:
    """Return the module with Warp's modules and runtime: ``warp.context``, or from 1.10 on ``warp._src.context``."""
    import warp as wp

    return importlib.import_module("warp._src.context" if hasattr(wp, "_src") else "warp.context")


def _modules(program: Program) -> list[Any]:
    """Return Warp's modules with kernels of the program and of ``wp.map``, in order.

    Generic kernels without known types are ignored.
    """
    kernel = _context().Kernel
    values = [value for module in program.modules() for value in vars(module).values()]
    own = [each for each in values if isinstance(each, kernel) and "-packages" not in each.func.__code__.co_filename]
    return list({id(each.module): each.module for each in own if not each.is_generic or each.overloads}.values())


backend = WarpBackend()
