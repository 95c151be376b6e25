"""Parts for a backend in another distribution: the standard library only, because workers import it in any environment under test.

A distribution names a `BackendInfo` under the entry point group ``cumatrix.backends``, and, for a library that cumatrix does not know, a
`Library` under ``cumatrix.libraries``. The module that the `BackendInfo` names has an object ``backend`` with the methods of `Backend`.
`docs/plugins.md` shows one from beginning to end; `cumatrix.contract` tests it.
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
