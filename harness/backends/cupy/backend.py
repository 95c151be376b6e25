"""CuPy's RawModule on a virtual device: the common part of ``cupy-nvrtc`` and ``cupy-jitify``.

`cupy._core.core.compile_with_cache`, which RawModule calls, runs unchanged: options, include directories, header
rewriting, NVRTC. Only the parts that need a driver are replaced: the query of the device's compute capability, loading
the result (`function.Module` stores it instead), and linking with libcudadevrt (`function.LinkState` calls the
toolkit's nvJitLink).

CuPy compiles an empty program in each process. Each cell is a process, and the empty program took half the time of a
small program. Its result depends only on the options and the architecture. A child of the fork server therefore
compiles it once, as CuPy does, for all cells with the same options and architecture, and CuPy receives that result.
Macros of a case are options too: they are ignored only if they occur nowhere in NVRTC's builtin headers, which are the
content of an empty program. If NVRTC refuses the options, or a macro could matter, CuPy compiles the empty program
itself.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.backends import series_of
from harness.backends.cupy import headers as cupy_headers
from harness.backends.cupy import patches as cupy_stand_ins
from harness.backends.cupy import pch
from harness.backends.cupy.headers import WithHeader, built_by
from harness.backends.cupy.patches import (
    LinkFailed,
    LinkState,
    Listening,
    Loading,
    Module,
    explain,
    no_runtime,
    watched_linker,
    watched_module,
    with_detected_architecture,
)
from harness.backends.cupy.program import Watch, given, is_program, run
from harness.backends.cupy.virtual_gpu import VirtualGpu, launch_all
from harness.backends.nvrtc import load as load_nvrtc
from harness.backends.nvrtc import macros, switches
from harness.libraries import LIBRARIES
from harness.nvidia.includes import Words, defined, version_in
from harness.nvidia.pch import PLAIN, Precompiled, builtin
from harness.protocol import process_output
from harness.protocol.backend import Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready
from harness.protocol.text import decoded

_WORTH = 2
"""Minimum number of cells that share one compilation: a fork takes half as long as the compilation."""


class _Left(BaseException):
    """Leaves CuPy with the result or None; CuPy's ``except Exception`` does not catch it."""

    def __init__(self, found: dict[str, Any] | None) -> None:
        self.found = found


class EmptyProgram:
    """The results for the empty program in one fork server.

    Parameters
    ----------
    compiler : module
        ``cupy.cuda.compiler``.
    """

    def __init__(self, compiler: Any) -> None:
        self._compiler, self._real = compiler, compiler._preprocess
        self._known: dict[str, dict[str, Any] | None] = {}
        self._requests: Counter[str] = Counter()

    @cached_property
    def _words(self) -> Words:
        """Words of an empty program; empty if they are unknown."""
        return Words(builtin())

    def ahead(self, job: Job, alike: int, compile_job: Callable[[Job], None], pulse: Callable[[], None]) -> None:
        """Compile the empty program for a cell and the cells like it, if there are enough of them.

        Parameters
        ----------
        job : Job
            The cell.
        alike : int
            Number of following cells with the same options; 0 if unknown, negative to compile nothing.
        compile_job : callable
            Compiles a job as a cell is compiled.
        pulse : callable
            Called repeatedly while a child runs.
        """
        if alike < 0:
            return
        key = _key(job)
        self._requests[key] += 1
        if key not in self._known and self._requests[key] + alike > _WORTH:
            self._known[key] = self._preprocessed(job, compile_job, pulse)
        if self._known.get(key):
            _ = [name.encode() in self._words for name in job.definitions]  # done once here instead of in each cell

    def stand_before(self, job: Job) -> None:
        """In a cell: give CuPy the known result.

        A Python program reports each text that it compiles, the empty program included, so CuPy compiles it itself.
        """
        known = None if is_program(job) else self._known.get(_key(job))
        given = macros(job.definitions)
        # Without macros no words are looked up: `ahead` did not read NVRTC's library either, and each cell would have
        # to.
        if known is None or (given and defined(given, self._words) is None):
            return

        def preprocess(source: str, options: tuple[str, ...], architecture: str, backend: str) -> str:
            rest = [option for option in options if option not in given]
            same = (source, backend, architecture, rest) == ("", "nvrtc", known["architecture"], known["options"])
            return str(known["lines"]) if same else str(self._real(source, options, architecture, backend))

        self._compiler._preprocess = preprocess

    def _preprocessed(
        self, job: Job, compile_job: Callable[[Job], None], pulse: Callable[[], None]
    ) -> dict[str, Any] | None:
        """Return the reply of a child that compiles the empty program with a cell's options, or None."""
        blank = replace(job, definitions={}, entries={}, stages=[], command=[], logs=[], notes=[])
        try:
            folder = Path(tempfile.mkdtemp())
        except OSError:
            return None
        try:
            return process_output.answer_of_helper(
                folder, lambda scratch: self._compiled(scratch, blank, compile_job), pulse
            )
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _compiled(self, folder: Path, blank: Job, compile_job: Callable[[Job], None]) -> dict[str, Any] | None:
        """In a child: return CuPy's result for the empty program with the options that it passes for a cell."""
        blank = replace(blank, source=folder / "empty.cu", scratch=folder)
        blank.source.write_text("")

        def leave(source: str, options: tuple[str, ...], architecture: str, backend: str) -> str:
            if not all(map(PLAIN.fullmatch, options)):
                raise _Left(None)
            lines = self._real(source, options, architecture, backend)
            raise _Left({"architecture": architecture, "options": options, "lines": lines})

        self._compiler._preprocess = leave
        try:
            compile_job(blank)
        except _Left as left:
            return left.found
        except Exception:  # noqa: BLE001 (the cell itself reports any refusal by NVRTC or CuPy)
            return None
        return None


def _key(job: Job) -> str:
    return json.dumps([job.target, job.options, job.include], sort_keys=True, default=str)


def options_of(setup: Setup, job: Job, built: str, *, macros_too: bool = True) -> tuple[str, ...]:
    """Return RawModule's options; `built` is the architecture if the case names it.

    Raises
    ------
    Unsupported
        If the case puts the toolkit's headers first, and CuPy's headers are in wheels.
    """
    given = job.options.get("arch", "implicit") == "given"
    folders = job.include_next_to_source(setup)
    if job.toolkit_first:
        if setup.wheels:
            raise Unsupported("CUDA's headers lie in wheels of CuPy's environment: there is no toolkit to put first")
        folders = [*job.toolkit_include(setup), *folders]
    return (
        *([f"--std={job.options['std']}"] if "std" in job.options else []),
        *([f"-arch={built}"] if given else []),
        *switches(job),
        *job.options.get("flags", []),
        *(macros(job.definitions) if macros_too else ()),
        # CuPy finds the toolkit's headers by CUDA_PATH and searches its bundled headers before them, unless the case
        # puts the toolkit's headers first.
        *(f"-I{folder}" for folder in folders),
    )


def keywords_of(setup: Setup, job: Job, jitify: bool) -> dict[str, Any]:
    """Return RawModule's arguments on a device, except the text."""
    # CuPy launches a kernel cooperatively if and only if it was compiled with this argument.
    cooperative = bool(job.options.get("enable_cooperative_groups")) or any(
        launch.cooperative for launch in job.launches
    )
    keywords: dict[str, Any] = {"options": options_of(setup, job, job.target), "backend": "nvrtc"}
    keywords |= {"jitify": True} if jitify else {}
    return keywords | ({"enable_cooperative_groups": True} if cooperative else {})


# CuPy's exceptions for errors of the driver or the runtime.
_DRIVER_ERRORS = ("CUDADriverError", "CUDARuntimeError", "OutOfMemoryError")


class CupyBackend:
    """`harness.protocol.backend.Backend` for CuPy.

    Parameters
    ----------
    jitify : bool
        Whether RawModule receives ``jitify=True``.
    """

    def __init__(self, jitify: bool) -> None:
        self.jitify, self.remarks = jitify, list[str]()
        self.before_jitify: pch.Precompiled | None = None
        self.precompiled: Precompiled | None = None

    def prepare(self, setup: Setup) -> Ready:
        name, wanted = _distribution(setup)
        self.version = series_of(wanted)
        if self.jitify:
            cupy_headers.install(setup)
        library = load_nvrtc(setup)
        headers = cupy_headers.find(setup)
        if self.version < (13, 0) and not setup.device:
            cupy_stand_ins.pretend(setup, "80")
            cupy_stand_ins.load(setup, name)
        self.gpu = None if setup.device else VirtualGpu(setup)
        if self.gpu:
            self.gpu.install()
        import cupy
        from cupy import _environment
        from cupy._core import core
        from cupy.cuda import compiler, function, jitify, nvrtc

        if cupy.__version__ != wanted:
            raise Unavailable(f"{name} {wanted} is installed, but the CuPy that was imported says {cupy.__version__}")
        self.compiler, self.core, self.jitify_module, self.function = compiler, core, jitify, function
        self.empty = EmptyProgram(compiler)
        found = "{}.{}".format(*nvrtc.getVersion())
        if found != setup.release:
            raise Unavailable(f"asked for NVRTC {setup.release}, CuPy loaded {found}")
        cupy_headers.hide_toolkits(setup, _environment, self.version, headers)
        folders = cupy_headers.added(core, compiler)
        cupy_headers.check(folders, headers, setup)
        if self.jitify:
            identity = [name, wanted, str(headers), folders]  # the first of two headers with one name is found
            table, self.remarks = cupy_headers.warm(setup, jitify, identity, partial(_compile_headers, self, setup))
            if self.version > (13, 0) and not setup.device:
                self.before_jitify = pch.begin(library, compiler, jitify, table)
        elif not setup.device and hasattr(library, "nvrtcGetPCHHeapSize"):
            self.precompiled = Precompiled(built_by(compiler.nvrtc))
        import numpy

        observed = {"cupy": cupy.__version__, "distribution": name, "nvrtc": found, "numpy": numpy.__version__}
        observed["headers_from"] = "wheels" if setup.wheels else "CUDA_PATH"
        return Ready(observed={**observed, "headers": version_in(folders or setup.include)})

    def ahead(self, setup: Setup, job: Job, alike: int, pulse: Callable[[], None]) -> None:
        """Prepare cells (`harness.protocol.backend.Ahead`).

        This prepares CuPy's empty program. With Jitify, it also prepares the header that CuPy puts before each program,
        and without Jitify, the headers at the program's beginning.
        """
        if is_program(job):
            return
        self.empty.ahead(job, alike, lambda blank: self.compile(setup, blank), pulse)
        if self.before_jitify:
            own_options = options_of(setup, replace(job, include=[]), job.target, macros_too=False)
            self.before_jitify.ahead(job, own_options, alike, lambda blank: self.compile(setup, blank), pulse)
        elif self.precompiled:
            self.precompiled.ahead(setup, job, alike, lambda blank: self.compile(setup, blank), pulse)

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile as ``RawModule(code=…, options=…, jitify=…, enable_cooperative_groups=…)`` does."""
        if job.together:
            raise Unsupported("RawModule takes one text, and this program has several files")
        _begin(self.core, self.compiler, setup, job)
        built = self._pretend(setup, job)
        options = options_of(setup, job, built)
        if is_program(job):
            self._run(setup, job)
            return
        cooperative = bool(job.options.get("enable_cooperative_groups"))
        job.command.append(
            f"cupy.RawModule(code=…, options={options!r}, backend='nvrtc', jitify={self.jitify}, "
            f"enable_cooperative_groups={cooperative})"
        )
        job.notes += self.remarks
        tap = job.scratch / "nvrtc.tap"
        cupy_headers.listen(tap)
        early = self.before_jitify.stand_before(self.compiler, self.jitify_module, job) if self.before_jitify else None
        job.enter("compile")
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                self.core.compile_with_cache(
                    decoded(job.source.read_bytes()),
                    options=options,
                    prepend_cupy_headers=False,
                    backend="nvrtc",
                    enable_cooperative_groups=cooperative,
                    jitify=self.jitify,
                )
        except Loading:
            pass  # the last step needs a device
        except (self.compiler.CompileException, self.compiler.JitifyException) as error:
            explain(job, tap if self.jitify else None, error, early.log if early else "")
        except LinkFailed as error:
            raise Rejected(str(error), stage="link") from None
        finally:
            calls = [call.options for call in cupy_headers.heard(tap)] + (early.calls if early else [])
            job.command += ["nvrtcCompileProgram " + " ".join(options) for options in calls[-1:]]
        job.notes += [f"{warning.category.__name__}: {warning.message}" for warning in warned]
        if not job.virtual and "assemble" not in job.stages:
            job.enter("assemble")

    def execute(self, setup: Setup, job: Job) -> None:
        """Call ``RawModule(…).get_function(…)`` and launch, with nothing replaced, only observed."""
        import cupy

        _begin(self.core, self.compiler, setup, job)
        tap = job.scratch / "nvrtc.tap"
        cupy_headers.listen(tap)
        self.compiler.function = SimpleNamespace(
            Module=watched_module(self.compiler.function.Module, job, several=is_program(job)),
            LinkState=watched_linker(self.compiler.function.LinkState, job),
        )
        if not self.jitify:
            self.compiler.nvrtc = Listening(self.compiler.nvrtc, job, every=is_program(job))
        if is_program(job):
            self._run(setup, job)
            return
        keywords = keywords_of(setup, job, self.jitify)
        shown = ", ".join(f"{name}={value!r}" for name, value in keywords.items())
        job.command.append(f"cupy.RawModule(code=…, {shown})")
        job.enter("compile")
        try:
            chosen = self.compiler._get_arch()
            if chosen != job.arch:
                raise Unsupported(
                    f"this CuPy knows NVRTC {setup.release} up to compute capability {chosen}, and builds for that"
                )
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                module = cupy.RawModule(code=decoded(job.source.read_bytes()), **keywords)
                module.compile()
                functions = {name: module.get_function(name) for name in job.entries}
            job.notes += dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in warned)
            launch_all(job, functions)
        except (self.compiler.CompileException, self.compiler.JitifyException) as error:
            explain(job, tap if self.jitify else None, error)
        except Exception as error:
            if type(error).__name__ not in _DRIVER_ERRORS:
                raise
            job.say(f"{type(error).__name__}: {error}")
            if job.stages[-1] == "compile":  # CuPy itself refused, before it passed anything on
                raise Unavailable(f"CuPy cannot use the device: {error}") from None
            raise Rejected(str(error), stage=job.stages[-1]) from None
        finally:
            calls = cupy_headers.heard(tap) if self.jitify else []
            job.command += ["nvrtcCompileProgram " + " ".join(call.options) for call in calls[-1:]]

    def _run(self, setup: Setup, job: Job) -> None:
        """Run a Python program on the real device, or with a stand-in for a device."""
        names = given(job, options_of(setup, job, job.target, macros_too=False), self.jitify)
        if self.gpu:
            # CuPy's own module class, because its functions accept no other: the stand-in's driver receives what it
            # loads.
            self.gpu.job = job
            self.compiler.function.Module = self.function.Module
        tap = job.scratch / "nvrtc.tap" if self.jitify else None
        if tap:
            cupy_headers.listen(tap)
        run(job, names, Watch(job, self.compiler), self.gpu, tap)
        if self.gpu and not job.virtual:
            job.enter("assemble")

    def _pretend(self, setup: Setup, job: Job) -> str:
        """Present a device of the target's compute capability to CuPy.

        Return the architecture that CuPy will request.
        """
        compiler, arch = self.compiler, job.arch
        job.device = {"virtual": True, "compute_capability": job.compute_capability}
        cupy_stand_ins.pretend(setup, arch)
        compiler.device = SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability=arch))
        for name in ("_get_arch", "_get_arch_for_options_for_nvrtc"):
            # Memoized per device, which queries the runtime for the device's number.
            setattr(compiler, name, getattr(getattr(compiler, name), "__wrapped__", getattr(compiler, name)))
        compiler._use_ptx = job.virtual
        self.empty.stand_before(job)
        if not self.jitify:
            if self.precompiled and not is_program(job):
                compiler.nvrtc = WithHeader(compiler.nvrtc, setup, job, self.precompiled)
            compiler.nvrtc = Listening(compiler.nvrtc, job, every=is_program(job))
        compiler.function = SimpleNamespace(Module=lambda: Module(job), LinkState=lambda: LinkState(setup, job))
        if setup.wheels or not job.toolkit_include(setup):
            compiler._get_cudadevrt_path = no_runtime(compiler._get_cudadevrt_path, job)
        else:
            # The compiler's library, not the headers' toolkit's. PyPI's wheels before 12.9 lack it: code is compiled,
            # and a note says that it is not linked.
            runtime = setup.home / "lib64" / "libcudadevrt.a"
            compiler._get_cudadevrt_path = lambda: str(runtime) if runtime.is_file() else ""
        if self.version == (13, 0):
            self.jitify_module.jitify = with_detected_architecture(self.jitify_module.jitify, arch)
        chosen = compiler._get_arch()
        if chosen != arch:
            raise Unsupported(
                f"this CuPy knows NVRTC {setup.release} up to compute capability {chosen}: for a device of {arch} it builds for {chosen}"
            )
        return job.target


def _compile_headers(backend: CupyBackend, setup: Setup, source: str) -> None:
    """Compile only includes, in a child, to collect the headers that Jitify finds."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job("headers", Path(folder, "headers.cu"), {}, {}, "sm_75", {}, setup.include, scratch=Path(folder))
        job.source.write_text(source)
        try:
            backend.compile(setup, job)
        except Rejected:
            pass  # Jitify cannot read this header with this toolkit: the cells that include it report that


def _begin(core: Any, compiler: Any, setup: Setup, job: Job) -> None:
    """Make CuPy use the cell's folder as its cache, and find only the headers that the case allows."""
    if job.arch[-1] in "af":
        raise Unsupported("CuPy builds for the compute capability of its device, which has no suffix")
    os.environ["CUPY_CACHE_DIR"] = str(job.scratch / "cupy-cache")
    if hasattr(compiler, "_DiskKernelCacheBackend"):  # from 14 on, CuPy chooses the folder at import
        compiler._kernel_cache_backend = compiler._DiskKernelCacheBackend()
    if not job.toolkit_include(setup):
        error = cupy_headers.without_toolkit(setup, core, compiler)
        if error and not is_program(job):
            job.enter("compile")
            job.command.append(f"cupy.RawModule(code=…, options={options_of(setup, job, job.target)!r})")
            job.say(f"RuntimeError: {error}")
            raise Rejected("CuPy finds no headers of CUDA", stage="compile")


def _distribution(setup: Setup) -> tuple[str, str]:
    names = LIBRARIES["cupy"].distributions
    for name in names:
        if name in setup.builds:
            return name, setup.builds[name].version
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    raise Unavailable(f"CuPy is not installed: install {next(iter(names))}")


via_nvrtc = CupyBackend(jitify=False)
"""RawModule through NVRTC."""

via_jitify = CupyBackend(jitify=True)
"""RawModule through Jitify."""
