"""Python programs that use CuPy's API: their outcome is that of every kernel that CuPy compiles while they run.

``ElementwiseKernel``, ``ReductionKernel``, ``fuse``, ``cupyx.jit``, ``RawKernel`` and ``RawModule``, and kernels that
CuPy generates for operations on arrays, all call ``cupy.cuda.compiler``, which this module watches. The first refusal
counts, even if the program continues.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from harness.backends.cupy.patches import LinkFailed, explain
from harness.backends.cupy.virtual_gpu import VirtualGpu
from harness.backends.python_program import Program, described, from_elsewhere, in_short, missing, tidy
from harness.protocol.backend import Ended, Job, Rejected, Unavailable, Unsupported

_MODULES = ("cupy", "cupyx", "cupy_backends")
# Messages of CuPy and its libraries if they need a device, or a CUDA library that does not compile.
_LACKING = re.compile(
    r"cudaError[A-Z]|CUDA_ERROR_[A-Z]|^(CUBLAS|CUFFT|CURAND|CUSOLVER|CUSPARSE|NCCL)_?[A-Z]|lib(cu|nccl)\w*\.so"
)
_ITS_OPTIONS = ("arch", "std", "rdc", "debug", "lineinfo", "fastmath", "flags", "ptxas")


def is_program(job: Job) -> bool:
    """Return whether the cell's source is a Python program instead of a kernel's text."""
    return job.source.suffix == ".py"


def given(job: Job, options: tuple[str, ...], jitify: bool) -> dict[str, Any]:
    """Return the program's names in addition to its definitions.

    They are ``OPTIONS``, for ``options=``, and ``JITIFY``, for ``jitify=``.

    Raises
    ------
    Unsupported
        If the cell has options that the program does not use.
    """
    text = job.source.read_text("utf-8", "replace")
    wanted = [name for name in _ITS_OPTIONS if job.options.get(name) and job.options.get(name) != "implicit"]
    if wanted and "OPTIONS" not in text:
        names = " and ".join(wanted)
        raise Unsupported(f"{job.source.name} does not use OPTIONS, so {names} would not reach CuPy: options=OPTIONS")
    return {"OPTIONS": options, "JITIFY": jitify}


@dataclass
class Watch:
    """Watches CuPy's compiler.

    Parameters
    ----------
    job : Job
        The cell.
    compiler : module
        ``cupy.cuda.compiler``.

    Attributes
    ----------
    refused : list of Exception
        Exceptions of failed compilations.
    jitify : bool
        Whether Jitify compiled anything.
    nvcc : bool
        Whether the program requested nvcc, which no CuPy backend replaces.
    """

    job: Job
    compiler: Any
    refused: list[Exception] = field(default_factory=list)
    jitify: bool = False
    nvcc: bool = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Watch CuPy's compiler inside the context, and log Python's warnings."""
        original, prepare = self.compiler._compile_module_with_cache, self.compiler._jitify_prep

        def heard(*arguments: Any, **keywords: Any) -> Any:
            self.job.enter("compile")
            if inspect.signature(original).bind(*arguments, **keywords).arguments.get("backend") == "nvcc":
                self.nvcc = True
                raise Unsupported("CuPy would have nvcc compile it")
            try:
                return original(*arguments, **keywords)
            except Exception as error:
                self.refused.append(error)
                raise

        def heard_jitify(*arguments: Any, **keywords: Any) -> Any:
            self.jitify = True
            return prepare(*arguments, **keywords)

        self.compiler._compile_module_with_cache, self.compiler._jitify_prep = heard, heard_jitify
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            try:
                yield
            finally:
                self.compiler._compile_module_with_cache, self.compiler._jitify_prep = original, prepare
                for text in dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught):
                    self.job.say(tidy(text, self.job))


def run(job: Job, names: dict[str, Any], watch: Watch, gpu: VirtualGpu | None, tap: Path | None) -> None:
    """Run the program to its end.

    Parameters
    ----------
    job : Job
        The cell.
    names : dict
        The names that `given` returned.
    watch : Watch
        The watcher of CuPy's compiler.
    gpu : VirtualGpu or None
        The stand-in for a device; None on a real device.
    tap : Path or None
        The recorded calls of NVRTC, if Jitify makes them.

    Raises
    ------
    Ended
        For any status other than ``built``.
    """
    job.modules = _MODULES
    job.command.append(f"python {job.source.name}")
    job.enter("compile")
    program, raised = Program(job, names), None
    with watch.listening():
        try:
            program.run()
            if gpu is None and job.artifact is not None and program.failure is None:
                _wait(job)
        except MemoryError:
            raise
        except BaseException as error:  # noqa: BLE001 (classified below)
            raised = error
    if watch.nvcc:
        raise Unsupported(
            f"CuPy would have nvcc compile a kernel of {job.source.name}, and this backend is for NVRTC alone"
        )
    if gpu is not None and gpu.fault is not None:
        raise gpu.fault
    if tap and not watch.jitify:
        raise Unsupported(
            f"Jitify has no part in {job.source.name}, so it is as under cupy-nvrtc: RawModule(…, jitify=JITIFY)"
        )
    for refusal in watch.refused[:1]:
        _refused(job, refusal, tap, virtual=gpu is not None)
    if gpu is not None and gpu.ended is not None:
        raise gpu.ended
    if raised is not None and (isinstance(raised, Ended) or not from_elsewhere(raised)):
        raise raised
    if failure := raised or program.failure:
        _ended_early(job, failure, program.failure is not None, gpu)
    elif job.artifact is None:
        raise Unsupported(f"{job.source.name} has CuPy compile nothing")
    if gpu is not None and gpu.launches:
        launches = "1 launch was" if gpu.launches == 1 else f"{gpu.launches} launches were"
        job.notes.append(f"{launches} left out: the device is virtual")


def _wait(job: Job) -> None:
    """Wait for the program's launches, because a kernel's error appears only then."""
    from cupy.cuda import runtime

    job.enter("launch")
    runtime.deviceSynchronize()


def _refused(job: Job, refusal: Exception, tap: Path | None, *, virtual: bool) -> NoReturn:
    """Raise the refusal of CuPy's compiler, or of a linker that it calls."""
    if virtual and not tap and "detect GPU architecture" in str(refusal):
        raise Unsupported(
            f"CuPy hands a kernel of {job.source.name} to Jitify, which looks for the device by itself: cupy-jitify has a stand-in for that"
        ) from None
    if isinstance(refusal, LinkFailed):
        raise Rejected(str(refusal), stage="link") from None
    if type(refusal).__name__ in ("CompileException", "JitifyException"):
        explain(job, tap, refusal)
    if not from_elsewhere(refusal):
        raise refusal
    job.say(described(refusal, job))
    stage = job.stages[-1] if job.stages[-1] in ("link", "load") else "compile"
    raise Rejected(f"CuPy refused: {type(refusal).__name__}", stage=stage) from None


def _ended_early(job: Job, failure: BaseException, own: bool, gpu: VirtualGpu | None) -> None:
    """Classify a program that did not finish although no compiler refused.

    Parameters
    ----------
    own : bool
        Whether CuPy is not involved in the exception.
    """
    lacking = gpu is not None and _LACKING.search(f"{failure}") is not None
    if not lacking and isinstance(failure, ImportError) and (what := missing(failure, job)):
        raise Unavailable(f"{job.source.name} needs more than is installed: {what}") from None
    if job.artifact is not None and gpu is not None and (own or lacking):
        when = ", after launches that computed nothing" if gpu.launches else ""
        job.notes.append(f"{job.source.name} ended early{when}: {in_short(failure, job)}")
        return
    if lacking:
        raise Unsupported(f"{job.source.name} asks for what only a device has: {in_short(failure, job)}") from None
    job.say(described(failure, job))
    stage = job.stages[-1] if gpu is None and job.stages[-1] in ("load", "launch") else "compile"
    who = job.source.name if own else "CuPy"
    raise Rejected(f"{who} raised {type(failure).__name__}", stage=stage) from None
