"""Parts for a backend in another distribution.

A distribution names a `BackendInfo` in the entry point group ``cumatrix.backends``. For a library that cumatrix does not know, it also
names a `Library` in ``cumatrix.libraries``. The module that the `BackendInfo` names has an object ``backend`` with the methods of
`Backend`. `docs/plugins.md` has a complete example; `cumatrix.contract` tests a backend.

Workers import this module in any environment under test: it imports the standard library only.
"""

from harness.backends import BackendInfo
from harness.backends.nvrtc import Nvrtc
from harness.libraries import Library, Release
from harness.nvidia.launch import run_on_driver
from harness.nvidia.virtual_driver import virtual_driver
from harness.protocol.backend import Backend, Crashed, Ended, Job, Rejected, Unavailable, Unsupported
from harness.protocol.messages import Ready, Setup

__all__ = [
    "Backend",
    "BackendInfo",
    "Crashed",
    "Ended",
    "Job",
    "Library",
    "Nvrtc",
    "Ready",
    "Rejected",
    "Release",
    "Setup",
    "Unavailable",
    "Unsupported",
    "run_on_driver",
    "virtual_driver",
]
