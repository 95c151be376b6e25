"""What the process of a cell may reach: its own folder and its own processes."""

from __future__ import annotations

import ctypes
import glob
import os
import sys

from harness.protocol.wire import Order, Setup
from harness.worker import broker, capabilities, landlock, seccomp

_NO_NEW_PRIVILEGES = 38
# What a program may write to without leaving anything.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What a driver writes to: the devices, memory that its processes share (/dev/shm), and the pipes of its server for several
# processes on one device (MPS). It names its threads through /proc/<pid>/task/<tid>/comm, and cuInit fails where it cannot:
# CUDA_ERROR_OPERATING_SYSTEM. /dev/dxg is the device under Windows.
_GPU = ("/dev/nvidia*", "/dev/nvidia-caps*/*", "/dev/dxg", "/proc")
_GPU_FOLDERS = ("/dev/shm", os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))  # noqa: S108 - nothing is made there

_libc = ctypes.CDLL(None, use_errno=True)


def confine(setup: Setup, order: Order, calls: bytes, records: str) -> None:
    """Take from this process, and from all that it starts, what it does not need to compile its cell.

    What the kernel cannot do is left out: ``cumatrix doctor`` says what that is.

    Parameters
    ----------
    setup, order
        The toolchain's and the cell's.
    calls : bytes
        From `seccomp.filter_for`; empty for no filter.
    records : str
        Where records of reads go to (`harness.protocol.reads`); empty where nothing is followed.
    """
    _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    capabilities.give_up()
    folders = [*own_folders(setup, order), *([order.steps] if order.steps else [])]
    files = [*_DEVICES, *([records] if records else [])]
    if setup.device:
        files += [path for pattern in _GPU for path in glob.glob(pattern)]
    landlock.restrict(folders, files)
    if calls:
        seccomp.install(calls)


def own_folders(setup: Setup, order: Order) -> list[str]:
    """Folders in which a cell may do as it likes: what lies there is its own, or cannot be told from it."""
    return [str(order.scratch), *_measured(), *(_GPU_FOLDERS if setup.device else ())]


def kept_from() -> tuple[list[str], list[str]]:
    """What this kernel keeps cells from, and what it cannot, in words."""
    found = landlock.version()
    words = {
        "writing outside of their folder": found >= 2,
        "looking into other processes": found >= 2,
        "cutting files short": found >= 3,
        "asking things of devices": found >= 5,
        "signals to other processes": found >= landlock.SIGNALS or broker.available(),
        "the priority and the processors of other processes": broker.available(),
        "limits of other processes, objects that outlive them, and owners of files": seccomp.available(),
        "modes and locks of files outside of their folder": broker.available(),
        "the rights of root, but for reading what other users own": True,
    }
    return [word for word, there in words.items() if there], [word for word, there in words.items() if not there]


def _measured() -> list[str]:
    """Where coverage.py writes, when it measures cumatrix's own tests."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    return [os.path.dirname(os.path.abspath(current.get_option("run:data_file")))] if current else []
