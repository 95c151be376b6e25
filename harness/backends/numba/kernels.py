"""Kernels of a Numba program: compiled ones, and those left to compile."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.backends.python.runner import Program, first_line
from harness.protocol.backend import Job, Unavailable, Unsupported

Collect = Callable[[Any], None]


@dataclass
class Watch:
    """Listens to Numba's dispatchers: what they compile, and what they refuse, whether or not the program goes on.

    Parameters
    ----------
    job : Job
        The cell, whose commands are added to.
    collect : callable
        Called with each kernel as it was linked.

    Attributes
    ----------
    compiled : list of str
        Names of kernels, once for each signature.
    refused : list of tuple
        Names, and the exceptions.
    tried : list
        The functions of all of them.
    """

    job: Job
    collect: Collect
    compiled: list[str] = field(default_factory=list)
    refused: list[tuple[str, Exception]] = field(default_factory=list)
    tried: list[Any] = field(default_factory=list)
    _names: list[str] = field(default_factory=list)
    _kernels: list[Any] = field(default_factory=list)  # held, so that no other one gets its id

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen for as long as the context lasts."""
        from numba.cuda.dispatcher import CUDADispatcher, _Kernel

        compile_, bind = CUDADispatcher.compile, _Kernel.bind

        def heard_compile(dispatcher: Any, signature: Any) -> Any:
            name = name_of(dispatcher)
            self.command(name, signature)
            self._names.append(name)
            self.tried.append(dispatcher.py_func)
            try:
                return compile_(dispatcher, signature)
            except Exception as error:
                self.refused.append((name, error))
                raise
            finally:
                self._names.pop()

        def heard_bind(kernel: Any) -> Any:
            result = bind(kernel)
            if not any(kernel is other for other in self._kernels):
                self._kernels.append(kernel)
                self.compiled.append(self._names[-1] if self._names else str(kernel.entry_name))
                self.collect(kernel)
            return result

        CUDADispatcher.compile, _Kernel.bind = heard_compile, heard_bind
        try:
            yield
        finally:
            CUDADispatcher.compile, _Kernel.bind = compile_, bind

    def command(self, name: str, arguments: Any) -> None:
        """Write down that a kernel is compiled."""
        capability = ".".join(map(str, self.job.capability))
        self.job.command.append(f"{name}.compile({arguments}) for compute capability {capability}")


@dataclass
class Choice:
    """The remaining work after a program has run.

    Attributes
    ----------
    waiting : list of tuple
        Kernels with a requested signature or without arguments: name, dispatcher, types of the arguments.
    untyped : list of str
        Kernels without known argument types.
    unknown : list of str
        Requested names that are no kernel's.
    known : list of str
        All names of kernels.
    names : dict
        The function's name, by the requested name.
    """

    waiting: list[tuple[str, Any, tuple[Any, ...]]] = field(default_factory=list)
    untyped: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)


def choose(job: Job, program: Program, watch: Watch) -> Choice:
    """Kernels left to compile, by the cell's signatures and those without arguments."""
    kernels = _kernels(program)
    choice = Choice(known=list(dict.fromkeys(name_of(kernel) for _, kernel in kernels)))
    asked = set()
    for name, signature in job.entries.items():
        meant = [k for variable, k in kernels if name == name_of(k)] or [k for v, k in kernels if name == v]
        if not meant:
            choice.unknown.append(name)
        for kernel in meant:
            arguments = arguments_of(name, signature)
            _fits(name, kernel, arguments)
            asked.add(id(kernel))
            choice.names[name] = name_of(kernel)
            choice.waiting.append((name, kernel, arguments))
    for _, kernel in kernels:
        tried = any(kernel.py_func is function for function in watch.tried)
        if id(kernel) in asked or tried or not program.owns(kernel.py_func):
            continue
        if kernel.py_func.__code__.co_argcount == 0:
            choice.waiting.append((name_of(kernel), kernel, ()))
        else:
            choice.untyped.append(name_of(kernel))
    return choice


def name_of(kernel: Any) -> str:
    """The name of a kernel's function."""
    return str(kernel.py_func.__name__)


def arguments_of(name: str, signature: str) -> tuple[Any, ...]:
    """Types of a signature's arguments.

    Raises
    ------
    Unavailable
        When it is none, or not a kernel's.
    """
    from numba.core import sigutils, types

    try:
        arguments, result = sigutils.normalize_signature(signature)
    except Exception as error:  # noqa: BLE001 (Numba evaluates what the user wrote)
        words = f"the signature {signature!r} of {name} is not one that Numba knows: {first_line(error)}"
        raise Unavailable(words) from None
    if result not in (None, types.void):
        raise Unavailable(f"the signature {signature!r} of {name} has a result: a kernel returns nothing")
    return tuple(arguments)


def _fits(name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Raise where Numba would take another signature, or say something that does not help."""
    parameters = inspect.signature(kernel.py_func).parameters.values()
    usual = all(item.default is item.empty and item.kind is item.POSITIONAL_OR_KEYWORD for item in parameters)
    if usual and len(arguments) != len(parameters):
        raise Unavailable(f"the signature of {name} has {len(arguments)} arguments, and {name} takes {len(parameters)}")
    if not getattr(kernel, "_can_compile", True) and arguments not in kernel.overloads:
        there = " and ".join(str(types) for types in kernel.overloads)
        raise Unavailable(f"{name} declares its signature itself, {there}: it cannot be compiled for another one")


def _kernels(program: Program) -> list[tuple[str, Any]]:
    """Kernels by the names under which the program and its own modules have them, each once."""
    from numba.cuda.dispatcher import CUDADispatcher

    found: dict[int, tuple[str, Any]] = {}
    for module in program.modules():
        for variable, value in list(vars(module).items()):
            inner = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else [value]
            for item in inner:
                if issubclass(type(item), CUDADispatcher) and not item.targetoptions.get("device"):
                    found.setdefault(id(item), (variable, item))
    return list(found.values())


JIT_OPTIONS = ("cache", "debug", "opt", "lineinfo", "fastmath")


def jit_options(job: Job) -> dict[str, Any]:
    """The content of a program's ``JIT_OPTIONS``."""
    return {name: value for name, value in job.options.items() if name in JIT_OPTIONS}


def check_options(job: Job) -> None:
    """Look at the options before anything is compiled. Those of C++ alone (``std``, ``include``) do not concern Python, and are passed over.

    Raises
    ------
    Unsupported
        For an option that Numba has no word for, or that the program does not take up.
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
        asked = ", ".join(f"{name}=True" for name in wanted)
        raise Unsupported(
            f"{job.source.name} does not use JIT_OPTIONS, so {asked} would not reach Numba: @cuda.jit(**JIT_OPTIONS)"
        )
