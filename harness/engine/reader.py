"""Reading what cells left, in a process of its own (`harness.engine.reader_process`), with a limit of time and of memory.

Whatever reads hostile output may take long, and Python's expressions let no other thread run meanwhile: in this process they would hold up
every cell. Here the cell alone is lost whose output cannot be read.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace

from harness.diagnostics import one_line
from harness.engine.cgroups import parent
from harness.engine.collect import Remains
from harness.model import Outcome, Status
from harness.records.artifact_folder import ArtifactFolder

_SECONDS = 60.0
_MEMORY = 4 << 30
"""Address space of the process. Output of the largest size that is read takes less than half of that."""
_LARGEST = 32 << 20
"""Bytes of an outcome as JSON."""
_BEGIN = (
    "import sys; sys.path[:] = {path!r}; from harness.engine.reader_process import serve; serve({memory}, {largest})"
)


@dataclass(frozen=True)
class ReadingLimits:
    """What reading one cell's output may take.

    Parameters
    ----------
    seconds : float
        Time on the wall.
    memory : int
        Address space of the process that reads, in bytes.
    largest : int
        Size of the outcome, as JSON, in bytes.
    """

    seconds: float = _SECONDS
    memory: int = _MEMORY
    largest: int = _LARGEST


class ReaderClosed(Exception):
    """The reader was closed while it was at work."""


class _Failed(Exception):
    """A cell's output cannot be read; the message says why."""


class Reader:
    """Reads what cells left, one after another. Its process lasts until one of them exceeds a limit; the next cell then gets another one.

    Parameters
    ----------
    keep : ArtifactFolder, optional
        Where what was built is kept.
    limits : ReadingLimits
        Of each cell.
    """

    def __init__(self, keep: ArtifactFolder | None = None, limits: ReadingLimits | None = None) -> None:
        self.keep = keep
        self.limits = limits or ReadingLimits()
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self) -> None:
        """Start its process where there is none, so that it loads while a fork server does."""
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        parent()  # this process may have to leave its control group, for which it must be alone there
        self._channel, theirs = socket.socketpair()
        begin = _BEGIN.format(path=sys.path, memory=self.limits.memory, largest=self.limits.largest)
        with theirs:
            # Isolated: no variable and no file of the current folder has a say in what is imported there.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", begin],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        if self._closed:  # while it was starting, so that `close` did not see it
            self._end()
            raise ReaderClosed

    def read(self, remains: Remains) -> Outcome:
        """The outcome of a cell; a harness error where its output cannot be read within the limits.

        Raises
        ------
        ReaderClosed
            When the reader is closed meanwhile.
        """
        try:
            return self._ask(replace(remains, keep=str(self.keep.path) if self.keep else ""))
        except _Failed as error:
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
        """End its process, and with it whatever it reads."""
        self._closed = True
        self._end()

    def _ask(self, remains: Remains) -> Outcome:
        self.start()
        try:
            answer = json.loads(self._answer(remains.to_line()))
        except ValueError as error:
            raise _Failed(str(error)) from None
        if problem := answer["problem"]:
            raise _Failed(problem)
        if self.keep is not None:
            self.keep.note_unkept(answer["unkept"])
        return Outcome.from_json(answer["outcome"])

    def _answer(self, line: bytes) -> bytes:
        channel, process, limits = self._channel, self._process, self.limits
        assert channel is not None and process is not None
        until = time.monotonic() + limits.seconds
        found = bytearray()
        try:
            channel.settimeout(limits.seconds)
            channel.sendall(line)
            while not found.endswith(b"\n"):
                channel.settimeout(max(0.001, until - time.monotonic()))
                if not (data := channel.recv(1 << 18)):
                    raise _Failed(_death(process))
                found += data
        except TimeoutError:
            raise _Failed(f"it takes more than {limits.seconds:.0f} s") from None
        except OSError:
            raise _Failed(_death(process)) from None
        return bytes(found)

    def _end(self) -> None:
        process, channel = self._process, self._channel
        if process is not None:
            process.kill()
            process.wait()
        if channel is not None:
            try:
                channel.shutdown(socket.SHUT_RDWR)  # wakes a runner that waits for an answer
            except OSError:
                pass  # it was closed already
            channel.close()


def _death(process: subprocess.Popen[bytes]) -> str:
    """How the process ended."""
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        return "the process that reads it closed its channel"
    how = f"was ended by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"
    return one_line(f"the process that reads it {how}")
