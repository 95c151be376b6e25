"""nvcc as `torch.utils.cpp_extension` calls it, with its flags, include directories and ninja file.

PyTorch itself writes the build. ninja lists the build's commands, and this module runs them one by one.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.backends.nvcc import behind_toolkit, include_of, options_of
from harness.nvidia import nvcc
from harness.nvidia.launch import Launch, run_on_driver
from harness.nvidia.nvcc import StepCache
from harness.nvidia.tools import Step, ask, run
from harness.protocol.backend import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.codec import zipped
from harness.protocol.messages import LaunchSpec, Ready
from harness.protocol.text import decoded


def call_extension(job: Job, library: Path) -> None:
    """Import an extension that `torch.utils.cpp_extension` built, call it as the case specifies, and check the results.

    Raises
    ------
    Rejected
        At the stages ``load``, ``launch`` or ``verify``.
    """
    job.enter("load")
    job.command.append(f"import {library.stem}")
    try:
        module = _imported(library)
    except ImportError as error:
        job.say(f"error: {error}")
        raise Rejected("the extension cannot be imported", stage="load") from None
    if not job.launches:
        job.notes.append("imported; the case does not say how to call it")
    for spec in job.launches:
        _call(job, module, spec)


def _imported(library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(library.stem, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _call(job: Job, module: ModuleType, spec: LaunchSpec) -> None:
    """Call the exported function with the kernel's name, or the only exported function."""
    import torch

    launch = Launch(job, spec)
    exported = job.options.get("functions", [])
    name = launch.kernel if launch.kernel in exported else exported[0] if len(exported) == 1 else ""
    if not name:
        raise Ended(f"the extension exports {', '.join(exported) or 'nothing'}: none is {launch.kernel}")
    job.enter("launch")
    job.command.append(f"{module.__name__}.{name}({', '.join(item.name for item in launch.arguments)})")
    try:
        arguments = [
            _tensor(torch, value, argument.type) if argument.shape is not None else value.item()
            for value, argument in zipped(launch.values, launch.arguments)
        ]
        getattr(module, name)(*arguments)
        torch.cuda.synchronize()
        results = [_array(torch, item) if isinstance(item, torch.Tensor) else None for item in arguments]
    except (RuntimeError, TypeError) as error:  # exceptions of pybind11 and PyTorch, whose own errors are RuntimeErrors
        job.say(f"{type(error).__name__}: {error}")
        raise Rejected(f"{name} raised {type(error).__name__}", stage="launch") from None
    launch.verify(results)


def _tensor(torch: Any, value: Any, kind: str) -> Any:
    """Return a tensor on the device; a bfloat16 array contains the bits."""
    tensor = torch.from_numpy(value.copy())
    return (tensor.view(torch.bfloat16) if kind == "bfloat16" else tensor).cuda()


def _array(torch: Any, tensor: Any) -> Any:
    """Return a tensor as an array on the host."""
    tensor = tensor.cpu()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view("uint16")
    return tensor.numpy()


class _Written(BaseException):
    """PyTorch has written its build; the message is the folder."""


class TorchBackend:
    """`harness.protocol.backend.Backend` for PyTorch's extensions."""

    def prepare(self, setup: Setup) -> Ready:
        ready = nvcc.describe(setup)
        # ninja may be installed next to the interpreter, but not on PATH.
        os.environ["PATH"] += os.pathsep + os.path.dirname(sys.executable)
        import torch

        with _no_look_at_devices(torch):
            from torch.utils import cpp_extension

        cuda = torch.version.cuda
        if cuda is None:
            raise Unavailable(f"this build of PyTorch ({torch.__version__}) has no CUDA")
        if cuda.split(".")[0] != str(setup.version[0]):
            raise Unsupported(
                f"PyTorch {torch.__version__} is built with CUDA {cuda}; its extensions want nvcc {cuda.split('.')[0]}, and this is {setup.release}"
            )
        if not cpp_extension.is_ninja_available():
            raise Unavailable("torch.utils.cpp_extension needs ninja: pip install ninja")
        ready.observed |= {
            "torch": torch.__version__, "torch_cuda": cuda, "ninja": ask("ninja", "--version").strip(),
            "cxx": ask(cpp_extension.get_cxx_compiler(), "--version").splitlines()[0],
        }  # fmt: skip
        return ready

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile the device pass or the whole unit of ``load(sources=[…])``, or all of ``load_inline``."""
        depth = job.options.get("depth", "device")
        if job.virtual:
            raise Unsupported("TORCH_CUDA_ARCH_LIST has no word for PTX alone")
        if job.options.get("arch", "given") != "given":
            raise Unsupported("without TORCH_CUDA_ARCH_LIST, PyTorch builds for whatever devices it sees")
        if job.together and depth == "extension":
            raise Unsupported("load_inline takes one text")
        if job.options.get("rdc"):
            raise Unsupported("load() has no device link step; relocatable device code needs setuptools' CUDAExtension")
        number = job.compute_capability + job.arch.lstrip("0123456789")
        os.environ["TORCH_CUDA_ARCH_LIST"] = number
        job.command.append(f"TORCH_CUDA_ARCH_LIST={number}")
        folder = job.scratch / "build"
        folder.mkdir()
        for command in self._commands(setup, job, depth, folder):
            _execute(setup, job, command, depth, folder)
            if job.together and Step.of_line(command).program == "nvcc":
                job.complete()

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device, then import and call an extension, or pass device code to the driver."""
        self.compile(setup, job)
        if job.options.get("depth", "device") == "extension":
            call_extension(job, job.scratch / "build" / "kernel.so")
        else:
            run_on_driver(job)

    def _commands(self, setup: Setup, job: Job, depth: str, folder: Path) -> list[str]:
        from torch.utils import cpp_extension

        def written(build_directory: str, *_others: Any, **_more: Any) -> None:
            raise _Written(build_directory)

        cpp_extension._run_ninja_build = written
        options: dict[str, Any] = {
            "extra_cuda_cflags": [quoted(option) for option in (*options_of(job), *behind_toolkit(setup, job))],
            "with_cuda": True,
            "build_directory": str(folder),
        }
        include = include_of(setup, job)
        if include:
            options["extra_include_paths"] = include
        try:
            if depth == "extension":
                # Diagnostics name the case's own file and lines instead of those of load_inline's generated text.
                text = f'#line 1 "{job.source.name}"\n{decoded(job.source.read_bytes())}'
                options["functions"] = list(job.options.get("functions", []))
                job.command.append(f"load_inline('kernel', cuda_sources=[{job.source.name}], {_shown(options)})")
                declarations = [job.options.get("declarations", "")]
                cpp_extension.load_inline("kernel", cpp_sources=declarations, cuda_sources=[text], **options)
            else:
                names = ", ".join(source.name for source in job.sources)
                job.command.append(f"load('kernel', [{names}], {_shown(options)})")
                cpp_extension.load("kernel", [str(source) for source in job.sources], **options)
        except _Written:
            return ask("ninja", "-C", str(folder), "-t", "commands").splitlines()
        except ValueError as error:
            if "arch" not in str(error):
                raise
            if job.options.get("every_target"):
                job.enter("compile")
                job.say(f"ValueError: {error}")
                raise Rejected("PyTorch refused the architecture", stage="compile") from None
            raise Unsupported(f"PyTorch knows no compute capability {job.compute_capability}: {error}") from None
        raise Unavailable("this PyTorch does not build its extensions with ninja in the way that cumatrix knows")


@contextmanager
def _no_look_at_devices(torch: Any) -> Iterator[None]:
    """Keep the import of `cpp_extension` from querying devices.

    It does so only for a warning, and cells that are forked afterwards could then use no device.
    """
    original = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_available = original


def _execute(setup: Setup, job: Job, command: str, depth: str, folder: Path) -> None:
    """Run one command of the ninja file; below the depth of an extension, run only that of the CUDA source."""
    os.chdir(folder)
    step = Step.of_line(command)
    if step.program == "nvcc":
        argv = step.words[1:]
        nvcc.compile_unit(setup, job, nvcc.device_only(argv, "cubin") if depth == "device" else argv)
    elif depth == "extension":
        job.command.append(command)
        job.enter(step.stage)
        if step.stage == "compile":
            StepCache(job).compile(step)
        else:
            run(job, step)


def quoted(option: str) -> str:
    """Quote a word for a build file; ninja passes the line to a shell."""
    return shlex.quote(option).replace("$", "$$")


def _shown(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "build_directory")


backend = TorchBackend()
