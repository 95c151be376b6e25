"""Reader processes for cell output, limited in time and memory: each reads a line of JSON and writes one.

Parsing hostile output may take long, and Python's regular expressions hold the interpreter's lock meanwhile, which
would stop all cells of this process. A separate process limits the damage to the cell with the hostile output. One
process imports all modules once, and forks a reader on each request of a runner: importing takes as long as reading
some hundred cells.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.diagnostics import one_line
from harness.engine.collect import Remains, collect_outcome
from harness.engine.fork_server import parent
from harness.model import Outcome, Status
from harness.protocol.messages import lower
from harness.records.files import ArtifactFolder

_SECONDS = 60.0
_MEMORY = 4 << 30
"""Address space of the process. Output of the maximum size takes less than half of it."""
_LARGEST = 32 << 20
"""Maximum size of an outcome as JSON, in bytes."""
_BEGIN = "import sys; sys.path[:] = {path!r}; from harness.engine.reader import fork_readers; fork_readers({socket})"
_LOADING = 60.0
"""Seconds that the forking process may take to import its modules."""


@dataclass(frozen=True)
class ReadingLimits:
    """Limits for reading one cell's output.

    Parameters
    ----------
    seconds : float
        Time limit in seconds.
    memory : int
        Address space of the reading process, in bytes.
    largest : int
        Maximum size of the outcome as JSON, in bytes.
    """

    seconds: float = _SECONDS
    memory: int = _MEMORY
    largest: int = _LARGEST


class ReaderClosed(Exception):
    """The reader was closed while it was reading."""


class _Failed(Exception):
    """A cell's output cannot be read; the message has the reason."""


class _Host:
    """The process that forks readers for this process's runners. It ends after its last reader is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    def enter(self) -> None:
        """Count a user, and start the process for the first user."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._start()

    def leave(self) -> None:
        """End the process after the last user."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._end()

    def fork(self, limits: ReadingLimits) -> tuple[socket.socket, int]:
        """Start a reader.

        Returns
        -------
        tuple of socket and int
            The reader's channel and its pidfd.

        Raises
        ------
        OSError
            If no reader can be started.
        """
        channel, theirs = socket.socketpair()
        request = json.dumps({"memory": limits.memory, "largest": limits.largest}).encode()
        try:
            with theirs, self._lock:
                for _ in range(2):  # a killed process is replaced once
                    if self._process is None or self._process.poll() is not None:
                        self._end()
                        self._start()
                    assert self._requests is not None
                    try:
                        socket.send_fds(self._requests, [request], [theirs.fileno()])
                        _, found, _, _ = socket.recv_fds(self._requests, 1, 1, socket.MSG_CMSG_CLOEXEC)
                    except OSError:
                        found = []
                    if found:
                        return channel, found[0]
                    self._end()
            raise OSError("the process that forks readers has ended")
        except BaseException:
            channel.close()
            raise

    def _start(self) -> None:
        parent()  # this process may have to leave its control group, and must be alone in it for that
        self._requests, theirs = socket.socketpair()
        self._requests.settimeout(_LOADING)
        begin = _BEGIN.format(path=sys.path, socket=theirs.fileno())
        with theirs:
            # Isolated mode: variables and files of the current folder cannot affect imports.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", begin],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def _end(self) -> None:
        if self._requests is not None:
            self._requests.close()
        if self._process is not None:
            self._process.kill()  # its readers end with it
            self._process.wait()
        self._process = self._requests = None


_host = _Host()


class Reader:
    """Reads the files that cells left, one cell after another.

    Its process lasts until a cell exceeds a limit; the next cell gets a new process.

    Parameters
    ----------
    keep : ArtifactFolder, optional
        Folder for artifacts.
    limits : ReadingLimits
        Limits for each cell.
    """

    def __init__(self, keep: ArtifactFolder | None = None, limits: ReadingLimits | None = None) -> None:
        self.keep = keep
        self.limits = limits or ReadingLimits()
        self._closed = False
        self._lock = threading.Lock()
        self._process = -1  # a pidfd
        self._channel: socket.socket | None = None
        self._entered = False

    def start(self) -> None:
        """Start the forking process, which imports its modules while a fork server loads its library.

        Raises
        ------
        ReaderClosed
            If the reader is closed.
        """
        with self._lock:
            if self._closed:
                raise ReaderClosed
            if not self._entered:
                _host.enter()
                self._entered = True

    def read(self, remains: Remains) -> Outcome:
        """Return the outcome of a cell; a harness error if its output cannot be read within the limits.

        Raises
        ------
        ReaderClosed
            If the reader is closed in the meantime.
        """
        try:
            return self._ask(replace(remains, keep=str(self.keep.path.absolute()) if self.keep else ""))
        except _Failed as error:
            with self._lock:
                self._end()
            if self._closed:
                raise ReaderClosed from None
            reason = f"what the cell left cannot be read: {error}"
            seconds = round(remains.ended.wall, 4)
            return Outcome(
                status=Status.HARNESS_ERROR,
                reason=reason,
                seconds=seconds,
                device=remains.order.device,
                peak_bytes=remains.ended.peak_bytes,
            )

    def close(self) -> None:
        """End the reader's process, even while it reads."""
        with self._lock:
            self._closed = True
            self._end()
            if self._entered:
                _host.leave()
                self._entered = False

    def _ask(self, remains: Remains) -> Outcome:
        self.start()
        try:
            answer = json.loads(self._answer(remains.to_line()))
        except (OSError, ValueError) as error:
            raise _Failed(str(error)) from None
        if problem := answer["problem"]:
            raise _Failed(problem)
        if self.keep is not None:
            self.keep.note_unkept(answer["unkept"])
        return Outcome.from_json(answer["outcome"])

    def _answer(self, line: bytes) -> bytes:
        channel, limits = self._connected(), self.limits
        until = time.monotonic() + limits.seconds
        found = bytearray()
        try:
            channel.settimeout(limits.seconds)
            channel.sendall(line)
            while not found.endswith(b"\n"):
                channel.settimeout(max(0.001, until - time.monotonic()))
                if not (data := channel.recv(1 << 18)):
                    raise _Failed("the process that reads it has ended")
                found += data
        except TimeoutError:
            raise _Failed(f"it takes more than {limits.seconds:.0f} s") from None
        except OSError:
            raise _Failed("the process that reads it has ended") from None
        return bytes(found)

    def _connected(self) -> socket.socket:
        """Return the channel of a running process, started if necessary."""
        with self._lock:
            if self._closed:
                raise _Failed("the reader was closed")
            if self._channel is None or select.select([self._process], [], [], 0)[0]:
                self._end()
                self._channel, self._process = _host.fork(self.limits)
            return self._channel

    def _end(self) -> None:
        if self._process >= 0:
            try:
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has already ended
            os.close(self._process)
        if self._channel is not None:
            try:
                self._channel.shutdown(socket.SHUT_RDWR)  # wakes a runner that waits for a line
            except OSError:
                pass  # it is already closed
            self._channel.close()
        self._process, self._channel = -1, None


_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def fork_readers(descriptor: int) -> None:
    """Fork a reader for each request, until the other side closes the socket.

    A request is a line of JSON with `memory` and `largest`, and the reader's socket. The reply is a byte, with a pidfd
    of the reader.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)  # cells cannot inspect this process or its readers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps ended readers
    with socket.socket(fileno=descriptor) as requests:
        while True:
            text, found, _, _ = socket.recv_fds(requests, 1 << 10, 1)
            if not text:
                return
            request = json.loads(text)
            host, child = os.getpid(), os.fork()
            if child == 0:
                requests.close()
                _read(found[0], host, **request)
            os.close(found[0])
            try:
                reader = os.pidfd_open(child)
            except ProcessLookupError:
                requests.sendall(b"!")  # it has already ended
                continue
            socket.send_fds(requests, [b"."], [reader])
            os.close(reader)


def _read(descriptor: int, host: int, memory: int, largest: int) -> None:
    """Reply to every line of a socket until it ends, then exit; never returns.

    Parameters
    ----------
    descriptor : int
        The socket.
    host : int
        Process id of the parent; this process ends with it.
    memory : int
        Address space of this process, in bytes.
    largest : int
        Maximum size of a reply, in bytes.
    """
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != host:
            return
        limit = lower(memory, resource.getrlimit(resource.RLIMIT_AS)[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with socket.socket(fileno=descriptor) as channel, channel.makefile("rb") as lines:
            for line in lines:
                channel.sendall(_answer(line, largest) + b"\n")
    finally:
        os._exit(0)


def _answer(line: bytes, largest: int) -> bytes:
    try:
        remains = Remains.from_line(line)
        keep = ArtifactFolder(Path(remains.keep)) if remains.keep else None
        outcome = collect_outcome(remains, keep)
        text = json.dumps({"problem": "", "outcome": outcome.to_json(), "unkept": keep.unkept if keep else {}}).encode()
    except MemoryError:
        return _problem("it takes too much memory")
    except Exception as error:  # noqa: BLE001 (hostile files may raise anything)
        return _problem(one_line(traceback.format_exception_only(type(error), error)[-1]))
    return text if len(text) <= largest else _problem(f"{len(text)} bytes are to be kept of it, more than {largest}")


def _problem(words: str) -> bytes:
    answer: dict[str, Any] = {"problem": words}
    return json.dumps(answer).encode()
