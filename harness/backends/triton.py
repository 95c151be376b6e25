"""Triton's compiler (triton 3.0 to 3.9), for a chosen target instead of the device's.

A program runs as with ``python FILE`` (`harness.backends.python_program`), with a case's definitions in its globals.
``triton.compile`` then compiles its kernels for the case's signatures, in the syntax of Triton's ahead-of-time tool
(``triton/tools/compile.py``): types of arguments, and values of ``tl.constexpr`` arguments::

    *fp16, *fp16, *fp32:16, i32, 128

A name in a signature is a definition of the case. Every configuration of ``@triton.autotune`` is compiled, and sets the
arguments that it names. Programs may query the device: a driver with the cell's target answers, and launches nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import os
import platform
import re
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.backends.python_program import Program, described, errors_in_log, from_elsewhere, missing, signal_of, tidy
from harness.libraries import LIBRARIES
from harness.nvidia.launch import Driver, Launch, launch_on, load_on, numpy
from harness.protocol.backend import Crashed, Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready

_NAME = re.compile(r"[A-Za-z_]\w*")
_HINTS = ("1", "16")
_SHARED = 48 * 1024
"""Dynamic shared memory that a kernel may use without opting in, in bytes."""
CONFIGURED = "constexpr"
"""Placeholder in a signature for an argument that a configuration of ``@triton.autotune`` sets."""


@dataclass(frozen=True)
class Signature:
    """Types and values of a kernel's arguments, by name.

    Parameters
    ----------
    types : dict
        Types of the arguments that the compiled kernel takes.
    constants : dict
        Values of the other arguments.
    aligned : tuple of str
        Arguments divisible by 16.
    """

    types: dict[str, str]
    constants: dict[str, Any]
    aligned: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = [
            *(f"{name}: {kind}" for name, kind in self.types.items()),
            *map("{0[0]}={0[1]!r}".format, self.constants.items()),
        ]
        return ", ".join(words)


@dataclass(frozen=True)
class Kernel:
    """A kernel of the program, with one configuration of its autotuner.

    Parameters
    ----------
    function : JITFunction
        The kernel.
    options : Mapping
        ``num_warps``, ``num_stages``, …
    values : Mapping
        Arguments that the configuration sets.
    """

    function: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name with the configuration: ``dot[BLOCK=64, num_warps=4]``."""
        words = ", ".join(f"{name}={value}" for name, value in {**self.values, **self.options}.items())
        return f"{self.function.__name__}[{words}]" if self.values else str(self.function.__name__)


@dataclass(frozen=True)
class Compiled:
    """A kernel with the code that Triton generated for it.

    Parameters
    ----------
    kernel, signature : Kernel, Signature
        The kernel and its arguments.
    image : bytes
        The cubin, the PTX or the AMD code object.
    ptx : str
        The PTX that the cubin was assembled from; empty for AMD.
    metadata : Mapping
        Triton's metadata: ``name``, ``shared`` in bytes, ``num_warps``, ``num_ctas``, …
    """

    kernel: Kernel
    signature: Signature
    image: bytes
    ptx: str
    metadata: Mapping[str, Any]

    @property
    def hidden(self) -> int:
        """Number of pointers to Triton's own memory after the kernel's arguments, from Triton 3.3 on."""
        head = self.ptx.partition(".entry")[2].partition(")")[0]
        return len(re.findall(r"\.param\b", head)) - len(self.signature.types)


def read_signature(text: str, kernel: Kernel, definitions: Mapping[str, Any]) -> Signature:
    """Read a signature in the ahead-of-time tool's syntax for a kernel.

    Raises
    ------
    Unavailable
        If the signature does not fit the kernel.
    """
    name, names = kernel.function.__name__, list(kernel.function.arg_names)
    text = _NAME.sub(lambda found: str(definitions.get(found[0], found[0])), text)
    words = [word.strip() for word in text.split(",")]
    if len(words) != len(names):
        raise Unavailable(
            f"the signature of {name} has {len(words)} arguments, and {name} takes {len(names)}: {', '.join(names)}"
        )
    constexprs = {parameter.name for parameter in kernel.function.params if parameter.is_constexpr}
    types, constants, aligned = dict[str, str](), dict[str, Any](kernel.values), list[str]()
    for argument, word in zip(names, words):  # noqa: B905 (of one length; Python 3.9 has no strict)
        kind, _, hint = word.partition(":")
        if argument in constants:
            continue
        if (value := _value(word)) is not _NO_VALUE:
            constants[argument] = value
        elif argument in constexprs or word == CONFIGURED:
            raise Unavailable(f"the signature of {name} has {word!r} for {argument}, which takes a value, such as 128")
        elif hint and hint not in _HINTS:
            raise Unavailable(f"the signature of {name} has {word!r} for {argument}: a hint is :16 or :1")
        elif hint == "1":
            constants[argument] = 1
        else:
            types[argument] = kind.strip()
            aligned += [argument] if hint else []
    return Signature(types, constants, tuple(aligned))


_NO_VALUE = object()


def _value(word: str) -> Any:
    """Return the value of a word in a signature, or `_NO_VALUE` for a type."""
    try:
        value = ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return _NO_VALUE
    return value if value is None or isinstance(value, (bool, int, float, str)) else _NO_VALUE


class CellDriver:
    """Replaces Triton's driver of CUDA devices, which needs PyTorch, with a device of the cell's target.

    Releases up to 3.3 query it while they apply ``@triton.autotune``. Nothing can be launched on it.
    """

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        """Return the target."""
        return self._target

    def get_current_device(self) -> int:
        """Return the number of the only device."""
        return 0

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a function that raises, because nothing can be measured."""
        return _measured


def _measured(*_arguments: Any, **_options: Any) -> Any:
    raise RuntimeError("there is no device to measure configurations on")


class TritonBackend:
    """`harness.protocol.backend.Backend` for Triton."""

    def prepare(self, setup: Setup) -> Ready:
        """Import Triton; its variables select the toolkit's ptxas, or by default its own."""
        for name in [name for name in os.environ if name.startswith("TRITON_")]:
            del os.environ[name]
        if not setup.bundled:
            for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
                os.environ[name] = str(setup.home / "bin" / "ptxas")
        try:
            self.version = importlib.metadata.version("triton")
        except importlib.metadata.PackageNotFoundError:
            raise Unavailable("this environment has no triton: install it there") from None
        for module in ("triton", "triton.language", "triton.compiler", "triton.backends.nvidia.compiler"):
            importlib.import_module(module)
        sys.dont_write_bytecode = True  # for programs; the library's own modules have bytecode already
        return Ready(observed={"triton": self.version, "python": platform.python_version()})

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile to a cubin or an AMD code object for a real architecture, or to PTX for a virtual one."""
        self._check(job)
        if not _is_amd(job):
            job.device.update(virtual=True, compute_capability=job.compute_capability)
        self._build(job)

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then launch through the driver, because Triton's own launcher needs PyTorch."""
        self._check(job)
        built = self._build(job)
        if not job.launches:
            job.notes.append("not launched: the case does not say how")
            return
        try:
            numpy()
        except Unavailable as error:
            job.notes.append(f"not launched: {error}")
            return
        _launch(job, built)

    def _check(self, job: Job) -> None:
        """Raise for options and targets that Triton does not support."""
        if _is_amd(job):
            if self._number < (3, 5):
                raise Unsupported(
                    f"Triton {self.version} links code for AMD GPUs with ROCm's ld.lld; 3.5 is the first that brings a linker"
                )
        elif (made := self._made(job)) != job.arch and (self._number >= (3, 3) or job.arch != f"{made}a"):
            raise Unsupported(
                f"Triton {self.version} takes a compute capability, and makes sm_{made} of it, not {job.target}"
            )
        if job.options.get("arch", "given") == "implicit":
            raise Unsupported("without a target, Triton builds for the device that PyTorch sees")
        for name in ("flags", "ptxas"):
            if job.options.get(name):
                raise Unsupported(f"Triton takes no options for compilers ({name})")

    def _made(self, job: Job) -> str:
        """Return the architecture that Triton derives from the target's compute capability: ``"90a"``."""
        specific = job.capability >= (9, 0) and (self._number >= (3, 3) or job.capability == (9, 0))
        return job.arch.rstrip("af") + "a" * specific

    @property
    def _number(self) -> tuple[int, int]:
        major, minor = re.findall(r"\d+", self.version)[:2]
        return int(major), int(minor)

    def _build(self, job: Job) -> list[Compiled]:
        """Run the program, then compile the kernels that its signatures name.

        One refusal makes the cell rejected, and the other kernels are still compiled.
        """
        import triton

        job.modules = LIBRARIES["triton"].modules
        os.environ["TRITON_CACHE_DIR"] = str(job.scratch / "triton-cache")
        target = _gpu_target(job)
        triton.runtime.driver.set_active(CellDriver(target))
        if not _is_amd(job):
            _note_tool(job, target.arch)
        job.enter("compile")
        program = Program(job)
        with _outcome(job, self.version):
            program.run()
        known = _kernels(program)
        wanted = {name: known[name] for name in job.entries if name in known}
        if len(wanted) < len(job.entries):
            self._unknown(job, program, [name for name in job.entries if name not in known], list(known))
        if not wanted:
            self._untyped(job, program, list(known))
        kernels = [(text, kernel) for name, text in job.entries.items() for kernel in wanted[name]]
        refused, built = dict[str, Rejected](), list[Compiled]()
        for text, kernel in kernels:
            signature = read_signature(text, kernel, job.definitions)
            try:
                with _outcome(job, self.version):
                    built.append(_compile(job, kernel, signature, target))
            except Rejected as error:
                refused[kernel.name] = error
            else:
                if len(kernels) > 1:
                    job.complete()
        if refused and len(kernels) > 1:
            job.notes.append(
                f"refused: {', '.join(refused)}; built: {', '.join(each.kernel.name for each in built) or 'none'}"
            )
        if left := [name for name in known if name not in wanted]:
            job.notes.append(f"left out, since nothing gives the types of its arguments: {', '.join(left)}")
        program.note_failure()
        for refusal in refused.values():
            raise refusal
        return built

    def _unknown(self, job: Job, program: Program, unknown: list[str], known: list[str]) -> None:
        _fail(job, self.version, program)
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise Unavailable(f"{job.source.name} has no kernel {', '.join(unknown)}: {there}")

    def _untyped(self, job: Job, program: Program, known: list[str]) -> None:
        _fail(job, self.version, program)
        if not known:
            raise Unsupported(f"{job.source.name} defines no kernel of Triton's")
        raise Unsupported(
            f"nothing in {job.source.name} gives the types of the arguments of {', '.join(known)}: "
            f'give them with --signature "{known[0]}=*fp32, i32, 128", as for Triton\'s ahead-of-time tool'
        )


def _fail(job: Job, version: str, program: Program) -> None:
    """Raise the exception that ended the program early."""
    if program.failure:
        with _outcome(job, version):
            raise program.failure


def _is_amd(job: Job) -> bool:
    return job.target.startswith("gfx")


def _gpu_target(job: Job) -> Any:
    """Return the target as Triton's `GPUTarget`; a wave has 64 threads on gfx9, and 32 on later processors."""
    from triton.backends.compiler import GPUTarget

    if _is_amd(job):
        return GPUTarget("hip", job.target, 64 if len(job.arch) == 3 else 32)
    return GPUTarget("cuda", int(job.arch.rstrip("af")), 32)


def _note_tool(job: Job, arch: int) -> None:
    """Record the version of the ptxas that Triton uses for an architecture."""
    from triton.backends.nvidia import compiler

    parameters = inspect.signature(compiler.get_ptxas_version).parameters
    version = compiler.get_ptxas_version(arch) if parameters else compiler.get_ptxas_version()
    if found := re.search(r"\bV(\d+(?:\.\d+)+)", version):
        job.observed["ptxas"] = found[1]


def _kernels(program: Program) -> dict[str, list[Kernel]]:
    """Return the kernels of the program and its own modules by name, one per configuration."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    found: dict[str, list[Kernel]] = {}
    for module in program.modules():
        for value in list(vars(module).values()):
            function, configurations = value, list[dict[str, Any]]([{}])
            while not isinstance(function, JITFunction) and hasattr(function, "fn"):
                if isinstance(function, Autotuner):
                    configurations = [_configuration(each) for each in function.configs] or [{}]
                function = function.fn
            if isinstance(function, JITFunction) and program.owns(function.fn) and _is_kernel(value):
                found.setdefault(function.__name__, [Kernel(function, **each) for each in configurations])
    return found


def _is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel, and not a class or module with an attribute `fn`."""
    return type(value).__module__.startswith("triton.")


def _configuration(config: Any) -> dict[str, Any]:
    """Return the arguments and options of a `triton.Config`."""
    names = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    options = {name: value for name in names if (value := getattr(config, name, None)) is not None}
    return {"values": dict(config.kwargs), "options": options}


def _source(kernel: Kernel, signature: Signature) -> Any:
    """Return the argument of ``triton.compile`` in the form of this release."""
    from triton.compiler import ASTSource

    names = list(kernel.function.arg_names)
    places = [names.index(name) for name in signature.aligned]
    if "constants" in inspect.signature(ASTSource.__init__).parameters:  # up to 3.2
        backends = importlib.import_module("triton.backends.compiler")
        if hasattr(getattr(backends, "AttrsDescriptor", None), "from_hints"):  # 3.2
            attrs = backends.AttrsDescriptor.from_hints(dict.fromkeys(places, 16))
        else:
            attrs = importlib.import_module("triton.compiler").AttrsDescriptor(divisible_by_16=places, equal_to_1=[])
        return ASTSource(
            fn=kernel.function, signature=dict(signature.types), constants=dict(signature.constants), attrs=attrs
        )
    types = {name: signature.types.get(name, "constexpr") for name in names}
    constants = {(names.index(name),): value for name, value in signature.constants.items()}
    attrs = {(place,): [["tt.divisibility", 16]] for place in places}
    return ASTSource(fn=kernel.function, signature=types, constexprs=constants, attrs=attrs)


def _compile(job: Job, kernel: Kernel, signature: Signature, target: Any) -> Compiled:
    """Compile one kernel and follow its steps: the log shows the step of a crash."""
    import triton

    compile_options: dict[str, Any] = {
        name: job.options[name] for name in ("num_warps", "num_stages") if name in job.options
    }
    options = {**compile_options, **kernel.options}
    shown = "".join(f", {name}={value!r}" for name, value in options.items())
    job.command.append(
        f"triton.compile({kernel.function.__name__}({signature}), target={target.backend}:{target.arch}{shown})"
    )
    job.enter("compile")
    with errors_in_log(job), _warnings_in_log(job), _followed(job) as made:
        try:
            triton.compile(_source(kernel, signature), target=target, options=options)
        except _Made:
            pass
    for kind in ("hsaco", "cubin", "ptx"):
        if kind in made:
            data = made[kind]
            image = data if isinstance(data, bytes) else str(data).encode()
            job.keep(image, kind)
            return Compiled(kernel, signature, image, str(made.get("ptx", "")), made["metadata"])
    raise AssertionError("Triton ended without an artifact")


def _launch(job: Job, built: Sequence[Compiled]) -> None:
    """Load each kernel and launch it as the case specifies, with Triton's block and shared memory."""
    job.enter("load")
    driver = Driver()
    for each in built:
        metadata = each.metadata
        (function,) = load_on(driver, job, each.image, (metadata["name"],)).values()
        for spec in [spec for spec in job.launches if spec.kernel == each.kernel.function.__name__]:
            if metadata.get("num_ctas", 1) > 1 or metadata.get("global_scratch_size"):
                job.notes.append(f"{each.kernel.name} is not launched: it needs a cluster or memory of Triton's")
                continue
            launch = Launch(job, spec)
            types = list(each.signature.types)
            if len(launch.arguments) != len(types):
                raise Ended(
                    f"the case launches {spec.kernel} with {len(launch.arguments)} arguments, and Triton's takes {', '.join(types)}"
                )
            launch.block, launch.shared = (32 * metadata["num_warps"], 1, 1), metadata["shared"]
            launch.opt_in = launch.shared > _SHARED
            launch_on(driver, function, launch, each.hidden)


class _Made(BaseException):
    """Ends Triton's compilation when the target's code is complete."""


@contextmanager
def _followed(job: Job) -> Iterator[dict[str, Any]]:
    """Log the beginning of each step, and store the results; a virtual target ends with PTX."""
    from triton.backends import backends

    compiler = backends["amd" if _is_amd(job) else "nvidia"].compiler
    original, made = compiler.add_stages, dict[str, Any]()

    last = "hsaco" if _is_amd(job) else "ptx" if job.virtual else "cubin"

    def followed(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            job.enter("assemble" if name in ("cubin", "hsaco") else "compile")
            job.say(f"triton: {name}")
            made[name], made["metadata"] = step(*arguments), arguments[1]
            if name == last:
                raise _Made
            return made[name]

        return run

    def add_stages(backend: Any, stages: dict[str, Any], *arguments: Any) -> None:
        original(backend, stages, *arguments)
        for name, step in stages.items():
            stages[name] = followed(name, step)

    compiler.add_stages = add_stages
    try:
        yield made
    finally:
        compiler.add_stages = original


@contextmanager
def _warnings_in_log(job: Job) -> Iterator[None]:
    """Log Python's warnings without their locations in Triton."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for text in dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught):
                job.say(tidy(text, job))


@contextmanager
def _outcome(job: Job, version: str) -> Iterator[None]:
    """Distinguish refusals by Triton and ptxas from errors of the program and of cumatrix."""
    try:
        yield
    except (Ended, MemoryError):
        raise
    except BaseException as error:
        if isinstance(error, ImportError) and (what := missing(error, job)):
            raise Unavailable(f"{job.source.name} needs more than is installed: {what}") from None
        code = _exit_of_ptxas(error)
        if code is None and not from_elsewhere(error):
            raise
        job.say(_words(error, job))
        if code is not None:
            if number := signal_of(code):
                raise Crashed(f"ptxas was ended by signal {number}", signal=number, stage="assemble") from None
            raise Rejected("ptxas refused the PTX", stage="assemble") from None
        raise Rejected(f"Triton {version} refused the program", stage="compile") from None


def _exit_of_ptxas(error: BaseException) -> int | None:
    """Return ptxas's exit code if ptxas ended the compilation."""
    cause = error.__context__
    return cause.returncode if isinstance(cause, subprocess.CalledProcessError) else None


def _words(error: BaseException, job: Job) -> str:
    """Return an exception's text, with the error before the program's lines that Triton quotes."""
    if _exit_of_ptxas(error) is not None:
        lines = str(error).splitlines()
        messages = [line for line in lines if line.startswith(("ptxas ", "ptxas-"))]
        plain = "\n".join(re.sub(r"^ptxas-[a-z]+", "ptxas", line) for line in messages)
        return tidy("\n  ".join([plain, *(line for line in lines if line not in messages)]), job)
    inner = error
    while isinstance(inner.__cause__, type(error)) and hasattr(inner.__cause__, "error_message"):
        inner = inner.__cause__
    what = getattr(inner, "error_message", None)
    if not what and hasattr(inner, "error_message") and (cause := inner.__cause__):
        frames = traceback.extract_tb(cause.__traceback__)
        what = f"{type(cause).__name__}: {cause or (frames[-1].line if frames else '')}"
    if not what:
        return described(error, job)
    quoted = "\n  ".join(str(error).splitlines())
    return tidy(f"{type(inner).__name__}: {what}\n\n  {quoted}", job)


backend = TritonBackend()
