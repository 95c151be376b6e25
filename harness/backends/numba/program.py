"""One Numba program from its start to a verdict over all of its kernels."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from harness.backends.numba.kernels import Choice, Watch, choose, jit_options
from harness.backends.python.runner import Program, described, from_elsewhere, in_short, missing, said_by_ptxas, tidy
from harness.libraries import LIBRARIES
from harness.nvidia.launch import Driver, DriverError, Launch, refused
from harness.nvidia.virtual_driver import VirtualDevice, read_back
from harness.protocol.backend import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.codec import zipped
from harness.protocol.messages import LaunchSpec


class RealDevice:
    """A real device with the interface of `harness.nvidia.virtual_driver.VirtualDevice`; it replaces nothing.

    Parameters
    ----------
    setup, job, library
        As there.
    """

    ended: Ended | None = None
    fault: Exception | None = None

    def __init__(self, setup: Setup, job: Job, library: str) -> None:
        self.setup, self.job, self.library = setup, job, library

    @staticmethod
    def launched() -> int:
        """Launches that were left out: none."""
        return 0


@contextmanager
def watched(device: RealDevice) -> Iterator[None]:
    """Say which stage begins when Numba links, loads and launches, and keep the cubin it loads."""
    from numba.cuda.dispatcher import _Kernel

    job, bind, launch = device.job, _Kernel.bind, _Kernel.launch

    def watched_bind(kernel: Any) -> Any:
        library = kernel._codelibrary
        ptxs = library.get_asm_strs() if hasattr(library, "get_asm_strs") else [library.get_asm_str()]
        for ptx in ptxs:
            read_back(device.setup, job, device.library, ptx)
        job.enter("assemble")
        if getattr(library, "needs_cudadevrt", False) or getattr(library, "_linking_files", ()):
            job.enter("link")
        cubin = library.get_cubin()
        job.keep(bytes(getattr(cubin, "code", cubin)), "cubin")
        job.leave_to_driver()
        job.complete()
        job.enter("load")
        return bind(kernel)

    def watched_launch(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        job.enter("launch")
        return launch(kernel, *arguments, **keywords)

    _Kernel.bind, _Kernel.launch = watched_bind, watched_launch
    try:
        yield
    finally:
        _Kernel.bind, _Kernel.launch = bind, launch


def launch_kernel(job: Job, spec: LaunchSpec, kernel: Any) -> None:
    """Launch a dispatcher as ``kernel[grid, block, stream, shared](…)``, and check what it computed."""
    from numba import cuda

    launch = Launch(job, spec)
    job.command.append(str(launch))
    arguments = [
        cuda.to_device(value) if argument.shape is not None else value
        for value, argument in zipped(launch.values, launch.arguments)
    ]
    configured = kernel[launch.grid, launch.block, 0, launch.shared]
    with _allowed(job, launch) if launch.opt_in else _as_it_is():
        configured(*arguments)
    cuda.synchronize()
    launch.verify([item.copy_to_host() if hasattr(item, "copy_to_host") else None for item in arguments])


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _allowed(job: Job, launch: Launch) -> Iterator[None]:
    """Raise the limit of shared memory between loading and launching; Numba has no call for it."""
    from numba.cuda.dispatcher import _Kernel

    original: Callable[..., Any] = _Kernel.launch

    def raised(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        handle: Any = kernel._codelibrary.get_cufunc().handle
        try:
            _allow(_pointer(handle), launch.shared)
        except DriverError as error:
            job.enter("launch")
            raise refused(error, "launch", job.say) from None
        return original(kernel, *arguments, **keywords)

    job.notes.append("the kernel's limit of shared memory was raised through the driver: Numba has no call for it")
    _Kernel.launch = raised
    try:
        yield
    finally:
        _Kernel.launch = original


def _allow(kernel: ctypes.c_void_p, size: int) -> None:
    driver = Driver(context=False)
    try:
        driver.allow_shared(kernel, size)
    except DriverError as error:
        if error.name != "CUDA_ERROR_INVALID_HANDLE":
            raise
        # cuda.core loads libraries, whose kernels are of no context: this is the one of the current context.
        function = ctypes.c_void_p()
        driver.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        driver.allow_shared(function, size)


def _pointer(handle: Any) -> Any:
    value = getattr(handle, "value", None)
    return ctypes.c_void_p(value if isinstance(value, int) else int(handle))


Act = Callable[[str, Any, tuple[Any, ...]], None]

_MODULES = (*LIBRARIES["numba"].modules, *LIBRARIES["numba-cuda"].modules)
# What Numba raises where it cannot load or use a part of the toolkit at all.
_LACKING_PARTS = ("CudaSupportError", "NvvmSupportError", "NvrtcSupportError", "CCSupportError")


class Library(Protocol):
    """The backend of a Numba distribution."""

    library: str

    def check_libraries(self, setup: Setup) -> None:
        """Raise where another CUDA got into the process."""


def compile_all(library: Library, job: Job, device: VirtualDevice | RealDevice, watch: Watch, act: Act) -> None:
    """Run the program, and compile what it left uncompiled though its types are known.

    Every kernel counts: one that is refused makes the cell rejected, and the others are tried all the same. What
    could not be tried is left out, and said.

    Parameters
    ----------
    act : callable
        Compiles one kernel for one signature: name, dispatcher, types of the arguments.

    Raises
    ------
    Ended
        With any status but ``built``.
    """
    job.modules = _MODULES
    program, refusals = Program(job, {"JIT_OPTIONS": jit_options(job)}), list[Rejected]()
    try:
        with outcome(library, job, device):
            program.run()
            if program.failure and isinstance(device, RealDevice):
                raise program.failure  # what it computed was real
            for _, error in watch.refused[:1]:  # the program went on after it
                raise error
    except Rejected as refusal:
        refusals.append(refusal)
    choice = choose(job, program, watch)
    if choice.unknown and not refusals:
        with outcome(library, job, device):
            if program.failure:
                raise program.failure
            raise Unavailable(_unknown(job, choice))
    for name, kernel, arguments in choice.waiting:
        before = len(watch.refused)
        try:
            with outcome(library, job, device):
                act(name, kernel, arguments)
        except Rejected as refusal:
            refusals.append(refusal)
            watch.refused[before:] = [(name, refusal)]
        else:
            del watch.refused[before:]
            watch.compiled.append(name)
    _tell(job, device, watch, choice, program)
    if refusals:
        raise refusals[0]
    if job.artifact is None:
        with outcome(library, job, device):
            if program.failure:
                raise program.failure
        if not choice.known and not watch.compiled:
            raise Unsupported(f"{job.source.name} defines no CUDA kernel")
        raise Unsupported(_untyped(job, choice))
    job.artifact.names = choice.names


def _tell(job: Job, device: VirtualDevice | RealDevice, watch: Watch, choice: Choice, program: Program) -> None:
    """Notes on what the verdict is over."""
    refused = _names(name for name, _ in watch.refused)
    built = _names(name for name in watch.compiled if name not in refused.split(", "))
    if refused and (built or "," in refused):
        job.notes.append(f"refused: {refused}; built: {built or 'none'}")
    if choice.unknown:
        job.notes.append(f"left out, since the program did not get that far: {_names(choice.unknown)}")
    if choice.untyped and (built or refused):
        job.notes.append(f"left out, since nothing gives the types of its arguments: {_names(choice.untyped)}")
    if program.failure and (built or refused):
        when = ", after launches that computed nothing" if device.launched() else ""
        job.notes.append(f"{job.source.name} ended early{when}: {in_short(program.failure, job)}")


def _names(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _unknown(job: Job, choice: Choice) -> str:
    there = f"it has {_names(choice.known)}" if choice.known else "it has none"
    return f"{job.source.name} has no CUDA kernel {_names(choice.unknown)}: {there}"


def _untyped(job: Job, choice: Choice) -> str:
    kernels = _names(choice.untyped)
    one = "the kernel" if "," not in kernels else "the kernels"
    return (
        f"nothing in {job.source.name} gives the types of the arguments of {one} {kernels}: give their types with "
        f'--signature "{choice.untyped[0]}=void(float32[:])" or in the decorator, or launch them in the program'
    )


@contextmanager
def outcome(library: Library, job: Job, device: VirtualDevice | RealDevice) -> Iterator[None]:
    """Tell the library's refusals from the linker's, the program's and our own mistakes."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # Python's default
        try:
            yield
        except (Ended, MemoryError):
            raise
        except BaseException as error:
            if device.fault is not None:
                raise device.fault from None
            _linked(device)
            if not from_elsewhere(error):
                raise
            library.check_libraries(device.setup)
            raise _refusal(library, job, device, error) from None
        finally:
            for text in dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in seen):
                job.say(tidy(text, job))
    _linked(device)


def _linked(device: VirtualDevice | RealDevice) -> None:
    """Raise what the linker ended the kernel with; the next one starts afresh."""
    ended, device.ended = device.ended, None
    if ended is not None:
        raise ended


def _refusal(library: Library, job: Job, device: VirtualDevice | RealDevice, error: BaseException) -> Ended:
    """Classify an exception of the library or of the program."""
    if isinstance(error, ImportError) and (what := missing(error, job)):
        return Unavailable(f"{job.source.name} needs more than is installed: {what}")
    text = described(error, job)
    job.say(text)
    release = device.setup.release
    if type(error).__name__ in _LACKING_PARTS or "libcudadevrt.a not found" in text:
        return Unavailable(f"{library.library} misses a part of CUDA {release}: {text}")
    if said_by_ptxas(text):
        return Rejected("the linker's ptxas refused the PTX", stage="assemble")
    on_device = [stage for stage in job.stages[-1:] if stage in ("load", "launch")]
    linking = type(error).__name__ in ("LinkerError", "nvJitLinkError")
    return Rejected(
        f"{library.library} refused the program", stage="link" if linking else (on_device or ["compile"])[0]
    )
