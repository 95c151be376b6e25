"""The scheduler's side of a fork server (`harness.worker.fork_server`)."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import harness
from harness.diagnostics import one_line
from harness.protocol.reads import VARIABLE

_PACKAGE = Path(harness.__file__).parent


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one cell may use.

    Parameters
    ----------
    seconds : float
        Deadline, as time on the wall.
    memory : int
        Address space of each process of the cell, in bytes; 0 for no limit.
    output : int
        How much of what the cell's processes print is kept, in bytes: half from the start, half from the end.
    rlimits : Mapping[str, int]
        Further limits of each process, by the names of ``ulimit`` (`harness.protocol.limits.RLIMITS`); bytes or numbers.
    """

    seconds: float = 300.0
    memory: int = 16 << 30
    output: int = 256 << 10
    rlimits: Mapping[str, int] = field(default_factory=dict)


class ForkServerDied(Exception):
    """The fork server itself ended; the message says how."""


class ForkServer:
    """A running fork server.

    Parameters
    ----------
    python : str
        Interpreter of the environment under test.
    backend : str
        Name of the backend.
    setup : Mapping
        Fields of `harness.protocol.backend.Setup`.
    env : Mapping
        Variables of the process, but for its folders: see `clean_environment`.
    follow : Path or None
        The library that follows what is read (``native/reads.c``).
    startup : float
        Seconds that loading may take.

    Attributes
    ----------
    hello : dict
        What the backend said of itself: see `harness.protocol.backend.Backend.prepare`.
    reads : list of str or None
        Records of what was read until then; None where that was not followed.
    """

    def __init__(
        self,
        python: str,
        backend: str,
        setup: Mapping[str, Any],
        env: Mapping[str, str],
        follow: Path | None = None,
        startup: float = 300.0,
    ) -> None:
        self.backend = backend
        self.folder = Path(tempfile.mkdtemp(prefix="cumatrix-"))
        ours, theirs = socket.socketpair()
        self.channel = ours
        self._buffer = bytearray()
        self._log = open(self.folder / "fork_server.log", "w+b")  # noqa: SIM115 - closed with the fork server
        home = self.folder / "home"
        home.mkdir()
        # The library adds to this file and never makes it. The worker is the first program that is run.
        records = self.folder / "reads"
        records.write_text(f"X 0 0 0 0 0 {python}\0")
        followed = {"LD_PRELOAD": str(follow), VARIABLE: str(records)} if follow else {}
        self.process = subprocess.Popen(
            [python, "-s", str(_PACKAGE / "worker" / "boot.py"), str(_PACKAGE), backend, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=[theirs.fileno()],
            cwd=home,
            env={**env, "HOME": str(home), "TMPDIR": str(home), **followed},
            start_new_session=True,
        )
        theirs.close()
        try:
            self._send(setup)
            self.hello: dict[str, Any] = self._receive(startup)
        except ForkServerDied as error:
            self.hello = {"status": "unavailable", "reason": f"{backend} cannot be loaded: {error}"}
        self.reads: list[str] | None = self.hello.pop("reads", None)

    @property
    def ready(self) -> bool:
        """Whether the backend is loaded and takes jobs."""
        return "status" not in self.hello

    def run(self, job: Mapping[str, Any], limits: Limits, **more: Any) -> dict[str, Any]:
        """Run one job in a child of the fork server.

        Parameters
        ----------
        job : Mapping
            Fields of `harness.protocol.backend.Job`.
        limits : Limits
            What it may use.
        **more
            ``path``: the value of ``PATH``, where it is another than the worker's; ``visible``: that of
            ``CUDA_VISIBLE_DEVICES``; ``sanitizer``: path of compute-sanitizer.

        Raises
        ------
        ZygoteDied
            When the fork server itself ends; it cannot be used again.
        """
        self._send({"job": dict(job), "limits": asdict(limits), "backend": self.backend, **more})
        # The fork server keeps the deadline; this longer one is for the case that the fork server itself hangs.
        return self._receive(limits.seconds + 60)

    def close(self) -> None:
        """End the fork server and everything below it, and remove its folder."""
        try:
            self.channel.shutdown(socket.SHUT_RDWR)  # wakes a runner that waits for an answer
        except OSError:
            pass  # the fork server has gone already
        self.channel.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended in between
            self.process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, value: Mapping[str, Any]) -> None:
        try:
            self.channel.sendall(json.dumps(value).encode() + b"\n")
        except OSError:
            raise ForkServerDied(self._last_words()) from None

    def _receive(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.channel], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                self.process.kill()
                raise ForkServerDied(f"no answer within {seconds:.0f} s")
            data = self.channel.recv(1 << 16)
            if not data:
                raise ForkServerDied(self._last_words())
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return json.loads(line)

    def _last_words(self) -> str:
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self._log.flush()
        text = (self.folder / "fork_server.log").read_text("utf-8", "replace")[-2000:]
        how = (
            f"its process ended with signal {-code}" if code is not None and code < 0 else f"its process ended ({code})"
        )
        return f"{how}: {one_line(text)}" if text.strip() else how


def clean_environment(cuda_home: str) -> dict[str, str]:
    """Variables of a worker: nothing of the user's that could change an outcome but the path, and no CUDA but the toolkit's."""
    folders = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if os.path.isabs(folder) and not _has_cuda(folder)
    ]
    return {
        "PATH": os.pathsep.join([f"{cuda_home}/bin", *folders]),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "CUDA_HOME": cuda_home,
        "CUDA_PATH": cuda_home,
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        # A fork server must have one thread when it forks.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
        # Huge pages for the heap (glibc 2.35 and later): a forked child faults in a quarter of the pages.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    }


def plain_path(cuda_home: str) -> str:
    """``PATH`` of cells that compile inside their own process: the toolkit's tools and the system's."""
    return os.pathsep.join([f"{cuda_home}/bin", "/usr/local/bin", "/usr/bin", "/bin"])


def _has_cuda(folder: str) -> bool:
    return bool(re.search(r"cuda", folder, re.IGNORECASE)) or any(
        os.path.exists(os.path.join(folder, tool)) for tool in ("nvcc", "ptxas")
    )
