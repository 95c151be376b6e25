"""A case's ``kernel.py``: running it, finding what to compile in it, and telling whose fault an exception is."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.backends.api import Ended, Job, Unsupported
from harness.worker.numba_launch import RealDevice
from harness.worker.virtual_device import VirtualDevice

JIT_OPTIONS = ("cache", "debug", "opt", "lineinfo", "fastmath")
# Entry points of the driver that a stand-in lacks, as Numba and NVIDIA's bindings report them.
_LACKING = re.compile(r"Driver missing function: cu|[Ff]unction \"?cu[A-Z]\w*\"? (is )?not found")
_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_STANDARD = sysconfig.get_path("stdlib") + os.sep


# The driver's own linker does not say that its words are ptxas's.
_PTXAS = re.compile(r"^(nvJitLink error log: )?ptxas\b.*\b(error|fatal)\b|^error\s*: Entry function\b", re.MULTILINE)


def execute(job: Job, device: VirtualDevice | RealDevice) -> ModuleType:
    """Run ``kernel.py`` as the module ``kernel``, from a copy beside which caches are the cell's own."""
    path = _lay_out(job)
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(job.definitions)
    vars(module)["JIT_OPTIONS"] = {name: job.options[name] for name in JIT_OPTIONS if name in job.options}
    sys.modules["kernel"] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # Results are not computed: a program that checks them may stumble over that, and what it compiled counts.
        if not device.launched() or device.ended or device.fault or not raised_in_program(error):
            raise
        job.notes.append(f"the program went on after a launch that did nothing, and ended with {type(error).__name__}")
    return module


def _lay_out(job: Job) -> Path:
    """Copy the program, with links to the files beside it: it may import them or have them linked."""
    folder = job.scratch / "program"
    folder.mkdir()
    for entry in job.source.parent.iterdir():
        if entry.is_file() and not entry.name.startswith(".") and entry.name != "kernel.py":
            (folder / entry.name).symlink_to(entry.absolute())
    shutil.copyfile(job.source, folder / "kernel.py")
    return folder / "kernel.py"


def dispatchers(module: ModuleType) -> dict[str, Any]:
    """The module's kernels by the name of their function; device functions are none."""
    from numba.cuda.dispatcher import CUDADispatcher

    found = [value for value in vars(module).values() if isinstance(value, CUDADispatcher)]
    return {item.py_func.__name__: item for item in found if not item.targetoptions.get("device")}


def select(job: Job, kernels: dict[str, Any]) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """What to compile: kernel name, dispatcher and types of the arguments."""
    if not kernels:
        raise Ended(f"{job.source.name} defines no CUDA kernel")
    for name, signature in job.entries.items():
        if name not in kernels:
            raise Ended(f"{job.source.name} defines no CUDA kernel {name}, only {', '.join(kernels)}")
        yield name, kernels[name], arguments_of(name, signature)
    if job.entries:
        return
    for name, kernel in kernels.items():
        if kernel.overloads:
            yield from ((name, kernel, arguments) for arguments in list(kernel.overloads))
        elif kernel.py_func.__code__.co_argcount == 0:
            yield name, kernel, ()
        else:
            raise Unsupported(f'the kernel {name} takes arguments: give their types, as in "void(float32[:])"')


def arguments_of(name: str, signature: str) -> tuple[Any, ...]:
    """Types of a signature's arguments.

    Raises
    ------
    Ended
        When it is none, or not a kernel's.
    """
    from numba.core import sigutils, types

    try:
        arguments, result = sigutils.normalize_signature(signature)
    except Exception as error:
        raise Ended(f"the signature {signature!r} of {name} is none: {first_line(error)}") from None
    if result not in (None, types.void):
        raise Ended(f"the signature {signature!r} of {name} has a result: a kernel returns nothing")
    return tuple(arguments)


def from_elsewhere(error: BaseException) -> bool:
    """Whether an exception came out of a library or the program, and not out of cumatrix.

    The innermost frame decides that is neither the standard library's nor made up: it may have passed something wrong.
    """
    if isinstance(error, SyntaxError) and is_program(error.filename):
        return True
    if _LACKING.search(str(error)):
        return False
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(_OURS):
            return False
        standard = frame.filename.startswith(_STANDARD) and "-packages" + os.sep not in frame.filename
        if not standard and not frame.filename.startswith("<"):
            return True
    return False


def is_program(file: str | None) -> bool:
    """Whether this is the program's own file."""
    return file is not None and Path(file).name == "kernel.py"


def raised_in_program(error: BaseException) -> bool:
    """Whether a line of the program itself raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and is_program(frames[-1].filename)


def described(error: BaseException, job: Job) -> str:
    """The exception's class and full text, and its place where the program and not a library raised it."""
    if isinstance(error, SyntaxError):
        text = f"{type(error).__name__}: {error.msg}\n  {error.filename}:{error.lineno}: {(error.text or '').strip()}"
    else:
        text = f"{type(error).__name__}: {error}"
        if raised_in_program(error) or isinstance(error, ImportError):
            frames = traceback.extract_tb(error.__traceback__)
            last = [frame for frame in frames if is_program(frame.filename)][-1:]
            text += "".join(f"\n  {frame.filename}:{frame.lineno}: {frame.line}" for frame in last)
    return tidy(text, job)


def tidy(text: str, job: Job) -> str:
    """Without colours and without the cell's own folder, so that the same refusal reads the same everywhere."""
    place = r"[^\s\"'(]*" + re.escape(job.scratch.name) + r"/(program/)?"
    text = re.sub(place, "", re.sub(r"\x1b\[[0-9;]*m", "", text))
    return re.sub(r'(?<=File ")(\.\./)*program/', "", text)  # Numba writes paths relative to the current folder


def said_by_ptxas(text: str) -> bool:
    """Whether a linker's refusal is that of the assembler inside it."""
    return bool(_PTXAS.search(text))


def first_line(error: BaseException) -> str:
    """The first line of an exception's text that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
