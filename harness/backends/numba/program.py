"""A Numba program: the kernels that it compiles, the kernels still to compile, and their common outcome."""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from harness.backends.python_program import (
    Program,
    described,
    first_line,
    from_elsewhere,
    in_short,
    is_ptxas_error,
    missing,
    tidy,
)
from harness.nvidia.launch import Driver, DriverError, Launch, refused
from harness.nvidia.virtual_driver import VirtualDevice, read_back
from harness.protocol.backend import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.codec import zipped
from harness.protocol.messages import LaunchSpec

Collect = Callable[[Any], None]


@dataclass
class Watch:
    """Watches Numba's dispatchers: what they compile and what they refuse, even if the program continues.

    Parameters
    ----------
    job : Job
        The cell, whose commands are extended.
    collect : callable
        Called with each linked kernel.

    Attributes
    ----------
    compiled : list of str
        Names of kernels, once per signature.
    refused : list of tuple
        Names with their exceptions.
    tried : list
        The functions of all compiled and refused kernels.
    """

    job: Job
    collect: Collect
    compiled: list[str] = field(default_factory=list)
    refused: list[tuple[str, Exception]] = field(default_factory=list)
    tried: list[Any] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _kernels: list[Any] = field(default_factory=list)  # kept alive, so that no other kernel gets the same id

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Watch the dispatchers inside the context."""
        from numba.cuda.dispatcher import CUDADispatcher, _Kernel

        compile_, bind = CUDADispatcher.compile, _Kernel.bind

        def heard_compile(dispatcher: Any, signature: Any) -> Any:
            with self.trying(dispatcher, signature):
                return compile_(dispatcher, signature)

        def heard_bind(kernel: Any) -> Any:
            result = bind(kernel)
            self.made(kernel, str(kernel.entry_name))
            return result

        CUDADispatcher.compile, _Kernel.bind = heard_compile, heard_bind
        try:
            yield
        finally:
            CUDADispatcher.compile, _Kernel.bind = compile_, bind

    @contextmanager
    def trying(self, dispatcher: Any, arguments: Any) -> Iterator[None]:
        """Record a compilation, and its refusal."""
        name = name_of(dispatcher)
        self.command(name, arguments)
        self._names.append(name)
        self.tried.append(dispatcher.py_func)
        try:
            yield
        except Exception as error:
            self.refused.append((name, error))
            raise
        finally:
            self._names.pop()

    def made(self, kernel: Any, otherwise: str) -> None:
        """Collect a kernel once; `otherwise` is its name if no compilation is in progress."""
        if not any(kernel is other for other in self._kernels):
            self._kernels.append(kernel)
            self.compiled.append(self._names[-1] if self._names else otherwise)
            self.collect(kernel)

    def command(self, name: str, arguments: Any) -> None:
        """Record the command of a compilation."""
        capability = ".".join(map(str, self.job.capability))
        self.job.command.append(f"{name}.compile({arguments}) for compute capability {capability}")


@dataclass
class Choice:
    """The remaining work after a program has run.

    Attributes
    ----------
    waiting : list of tuple
        Kernels with a requested signature or without arguments: name, dispatcher and argument types.
    untyped : list of str
        Kernels without known argument types.
    unknown : list of str
        Requested names that match no kernel.
    known : list of str
        Names of all kernels.
    names : dict
        Function names by requested name.
    """

    waiting: list[tuple[str, Any, tuple[Any, ...]]] = field(default_factory=list)
    untyped: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def choose(library: Library, job: Job, program: Program, watch: Watch) -> Choice:
    """Select the kernels left to compile: those with a signature in the cell, and those without arguments."""
    kernels = _kernels(program, library.kernel_class())
    choice = Choice(known=list(dict.fromkeys(name_of(kernel) for _, kernel in kernels)))
    chosen = set()
    for name, signature in job.entries.items():
        matches = [k for variable, k in kernels if name == name_of(k)] or [k for v, k in kernels if name == v]
        if not matches:
            choice.unknown.append(name)
        for kernel in matches:
            arguments = arguments_of(library, name, signature)
            _fits(name, kernel, arguments)
            chosen.add(id(kernel))
            choice.names[name] = name_of(kernel)
            choice.waiting.append((name, kernel, arguments))
    for _, kernel in kernels:
        tried = any(kernel.py_func is function for function in watch.tried)
        if id(kernel) in chosen or tried or not program.owns(kernel.py_func):
            continue
        if kernel.py_func.__code__.co_argcount == 0:
            choice.waiting.append((name_of(kernel), kernel, ()))
        else:
            choice.untyped.append(name_of(kernel))
    return choice


def name_of(kernel: Any) -> str:
    """Return the name of a kernel's function."""
    return str(kernel.py_func.__name__)


def arguments_of(library: Library, name: str, signature: str) -> tuple[Any, ...]:
    """Return the types of a signature's arguments.

    Raises
    ------
    Unavailable
        If the signature is invalid, or returns a value.
    """
    try:
        arguments, result = library.types_of(signature)
    except Exception as error:  # noqa: BLE001 (Numba evaluates what the user wrote)
        words = f"the signature {signature!r} of {name} is not one that Numba knows: {first_line(error)}"
        raise Unavailable(words) from None
    if str(result or "none") != "none":  # void is spelled none
        raise Unavailable(f"the signature {signature!r} of {name} has a result: a kernel returns nothing")
    return tuple(arguments)


def _fits(name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Raise if Numba would accept another signature, or print an unhelpful message."""
    parameters = inspect.signature(kernel.py_func).parameters.values()
    usual = all(item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD for item in parameters)
    if usual and len(arguments) != len(parameters):
        raise Unavailable(f"the signature of {name} has {len(arguments)} arguments, and {name} takes {len(parameters)}")
    if not getattr(kernel, "_can_compile", True) and arguments not in kernel.overloads:
        there = " and ".join(str(types) for types in kernel.overloads)
        raise Unavailable(f"{name} declares its signature itself, {there}: it cannot be compiled for another one")


def _kernels(program: Program, kind: type) -> list[tuple[str, Any]]:
    """Return kernels with the names that the program and its own modules give them, each kernel once."""
    found: dict[int, tuple[str, Any]] = {}
    for module in program.modules():
        for variable, value in list(vars(module).items()):
            inner = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else [value]
            for item in inner:
                if issubclass(type(item), kind) and not item.targetoptions.get("device"):
                    found.setdefault(id(item), (variable, item))
    return list(found.values())


JIT_OPTIONS = ("cache", "debug", "opt", "lineinfo", "fastmath")


def jit_options(job: Job) -> dict[str, Any]:
    """Return the content of a program's ``JIT_OPTIONS``."""
    return {name: value for name, value in job.options.items() if name in JIT_OPTIONS}


def check_options(job: Job) -> None:
    """Check the options before anything is compiled.

    Options for C++ only (``std``, ``include``) do not affect Python, and are ignored.

    Raises
    ------
    Unsupported
        For an option that Numba does not support, or that the program does not use.
    """
    options = job.options
    if options.get("arch", "implicit") == "given":
        raise Unsupported("Numba builds for the compute capability of its device: no architecture can be given")
    if options.get("rdc"):
        raise Unsupported("Numba takes no word on relocatable code (rdc): what needs libcudadevrt it links by itself")
    for name in ("flags", "ptxas"):
        if options.get(name):
            raise Unsupported(f"Numba takes no options for compilers ({name}); its own stand in @cuda.jit(…)")
    wanted = [name for name in JIT_OPTIONS if options.get(name)]
    if wanted and "JIT_OPTIONS" not in job.source.read_text("utf-8", "replace"):
        flags = ", ".join(f"{name}=True" for name in wanted)
        raise Unsupported(
            f"{job.source.name} does not use JIT_OPTIONS, so {flags} would not reach Numba: @cuda.jit(**JIT_OPTIONS)"
        )


class RealDevice:
    """A real device with the interface of `harness.nvidia.virtual_driver.VirtualDevice`; it replaces nothing.

    Parameters
    ----------
    setup, job, library
        As for `VirtualDevice`.
    """

    ended: Ended | None = None
    fault: Exception | None = None

    def __init__(self, setup: Setup, job: Job, library: str) -> None:
        self.setup, self.job, self.library = setup, job, library

    @staticmethod
    def launched() -> int:
        """Return the number of skipped launches, which is 0."""
        return 0


@contextmanager
def watched(device: RealDevice) -> Iterator[None]:
    """Enter the stages in which Numba links, loads and launches, and keep the cubin that it loads."""
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
    """Launch a dispatcher as ``kernel[grid, block, stream, shared](…)``, and check its results."""
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
    """Raise the limit of shared memory between loading and launching, because Numba has no call for it."""
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
        # cuda.core loads libraries, whose kernels belong to no context. This function belongs to the current context.
        function = ctypes.c_void_p()
        driver.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        driver.allow_shared(function, size)


def _pointer(handle: Any) -> Any:
    value = getattr(handle, "value", None)
    return ctypes.c_void_p(value if isinstance(value, int) else int(handle))


Act = Callable[[str, Any, tuple[Any, ...]], None]

# Numba's exceptions if it cannot load or use a part of the toolkit at all.
_LACKING_PARTS = ("CudaSupportError", "NvvmSupportError", "NvrtcSupportError", "CCSupportError")


class Library(Protocol):
    """The backend of a Numba distribution.

    Attributes
    ----------
    library : str
        Its name and version, for messages.
    modules : tuple of str
        The library's imported modules.
    """

    library: str
    modules: tuple[str, ...]

    def kernel_class(self) -> type:
        """Return the class of the library's kernels and device functions."""

    def types_of(self, signature: str) -> tuple[Any, Any]:
        """Return the types of a signature's arguments and of its result; None if it names no result."""

    def check_libraries(self, setup: Setup) -> None:
        """Raise if the process has loaded libraries of another CUDA."""


def compile_all(library: Library, job: Job, device: VirtualDevice | RealDevice, watch: Watch, act: Act) -> None:
    """Run the program, then compile its remaining kernels with known types.

    Every kernel counts: one refused kernel makes the cell rejected, and the other kernels are still compiled. A note
    lists the kernels that could not be tried.

    Parameters
    ----------
    act : callable
        Compiles a kernel for a signature: name, dispatcher and argument types.

    Raises
    ------
    Ended
        For any status other than ``built``.
    """
    job.modules = library.modules
    program, refusals = Program(job, {"JIT_OPTIONS": jit_options(job)}), list[Rejected]()
    try:
        with outcome(library, job, device):
            program.run()
            if program.failure and isinstance(device, RealDevice):
                raise program.failure  # on a real device, the program's results are real
            for _, error in watch.refused[:1]:  # the program continued after the refusal
                raise error
    except Rejected as refusal:
        refusals.append(refusal)
    choice = choose(library, job, program, watch)
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
    """Add notes on the kernels that the verdict covers."""
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
    """Distinguish refusals by the library and the linker from errors of the program and of cumatrix."""
    with warnings.catch_warnings(record=True) as caught:
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
            for text in dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught):
                job.say(tidy(text, job))
    _linked(device)


def _linked(device: VirtualDevice | RealDevice) -> None:
    """Raise the outcome that the linker recorded, and clear it for the next kernel."""
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
    if is_ptxas_error(text):
        return Rejected("the linker's ptxas refused the PTX", stage="assemble")
    on_device = [stage for stage in job.stages[-1:] if stage in ("load", "launch")]
    linking = type(error).__name__ in ("LinkerError", "nvJitLinkError")
    return Rejected(
        f"{library.library} refused the program", stage="link" if linking else (on_device or ["compile"])[0]
    )
