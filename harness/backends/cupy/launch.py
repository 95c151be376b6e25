"""CuPy on a real device: its functions are launched as a program's own line would."""

from __future__ import annotations

from typing import Any

from harness.nvidia.verify import Launch
from harness.protocol.backend import Job
from harness.protocol.python39 import zipped


def launch_all(job: Job, functions: dict[str, Any]) -> None:
    """Launch the functions of a module as the case says, and check what they computed.

    Raises
    ------
    Rejected
        At ``verify``; what CuPy raises before is its own.
    """
    import cupy

    if not job.launches:
        job.notes.append("loaded; the case does not say how to launch")
    for spec in job.launches:
        launch, function = Launch(job, spec), functions[spec.kernel]
        job.enter("launch")
        job.command.append(str(launch))
        arguments = [
            cupy.asarray(value) if argument.shape is not None else value
            for value, argument in zipped(launch.values, launch.arguments)
        ]
        if launch.opt_in:
            function.max_dynamic_shared_size_bytes = launch.shared
        function(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared)
        cupy.cuda.runtime.deviceSynchronize()
        launch.verify([cupy.asnumpy(item) if isinstance(item, cupy.ndarray) else None for item in arguments])
