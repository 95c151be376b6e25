"""An extension of PyTorch on a real device: imported, and its functions called with tensors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.nvidia.verify import Launch
from harness.protocol.backend import Ended, Job, Rejected
from harness.protocol.job import LaunchSpec
from harness.protocol.python39 import zipped


def call_extension(job: Job, library: Path) -> None:
    """Import what `torch.utils.cpp_extension` built, call what the case says how to launch, check the results.

    Raises
    ------
    Rejected
        At ``load``, ``launch`` or ``verify``.
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
    """Call the exported function of the kernel's name, or the only one there is."""
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
    except (RuntimeError, TypeError) as error:  # what pybind11 and PyTorch raise: its own errors are RuntimeErrors
        job.say(f"{type(error).__name__}: {error}")
        raise Rejected(f"{name} raised {type(error).__name__}", stage="launch") from None
    launch.verify(results)


def _tensor(torch: Any, value: Any, kind: str) -> Any:
    """A tensor on the device; a bfloat16 comes as its bits."""
    tensor = torch.from_numpy(value.copy())
    return (tensor.view(torch.bfloat16) if kind == "bfloat16" else tensor).cuda()


def _array(torch: Any, tensor: Any) -> Any:
    """The same back."""
    tensor = tensor.cpu()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view("uint16")
    return tensor.numpy()
