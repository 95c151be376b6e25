"""Hostile output of other programs: files and processes are read within limits.

A helper runs in a throw-away child, so that it leaves no state in the fork server.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from select import POLLIN, poll
from typing import Any

LOOK = 1.0
"""Seconds between two checks."""


def resume(child: int) -> None:
    """Continue a child process if it was stopped since the last call."""
    try:
        if os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG):
            os.kill(child, signal.SIGCONT)
    except (ChildProcessError, ProcessLookupError):
        pass  # it has ended


_GRACE = 10.0  # seconds


def run_to_end(argv: Sequence[str], **options: Any) -> int:
    """Run a command to its end and return its exit code; on an interrupt, end the command's process group.

    Parameters
    ----------
    argv : sequence of str
        The program and its arguments.
    **options
        Options of `subprocess.Popen`.

    Raises
    ------
    OSError
        If the command cannot be started.
    """
    process = subprocess.Popen(argv, start_new_session=True, **options)
    try:
        return process.wait()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_GRACE)  # it may clean up first
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


KEPT = 2 << 20
"""Kept size of a tool's output, in bytes: half from the start, half from the end."""

_CHUNK = 1 << 16
_LEFT_OUT = re.compile(r"\n\[\.\.\. (\d{1,18}) (?:bytes|characters) left out \.\.\.\]\n")


def left_out(count: int) -> bytes:
    """Return the line that replaces omitted bytes."""
    return b"\n[... %d bytes left out ...]\n" % count


class Printed:
    """The first and the last part of a stream.

    Parameters
    ----------
    limit : int
        Kept size in bytes: half from the start, half from the end.

    Attributes
    ----------
    total : int
        Size of the whole stream in bytes.
    """

    def __init__(self, limit: int = KEPT) -> None:
        self.total = 0
        self._half = limit // 2
        self._head, self._tail = bytearray(), bytearray()

    def add(self, data: bytes) -> None:
        """Add the next data."""
        self.total += len(data)
        room = max(0, self._half - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: max(0, len(self._tail) - self._half)]

    def drain(self, descriptor: int, most: int) -> None:
        """Add about `most` available bytes from a non-blocking descriptor."""
        until = self.total + most
        while self.total < until:
            try:
                data = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                return
            if not data:
                return
            self.add(data)

    @property
    def left_out(self) -> int:
        """Number of omitted bytes."""
        return self.total - len(self._head) - len(self._tail)

    @property
    def text(self) -> str:
        """The kept text, with a line in its middle that counts the omitted bytes."""
        middle = left_out(self.left_out) if self.left_out else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", "replace")


@dataclass(frozen=True)
class Finished:
    """A process that has ended.

    Parameters
    ----------
    code : int
        Exit code; negative for the signal that ended it.
    output : str
        Standard output, with standard error if they were merged, without the middle if it is long.
    total : int
        Size of the output in bytes.
    whole : bool
        Whether the output is complete.
    errors : str
        Standard error, if it was kept apart.
    """

    code: int
    output: str
    total: int = 0
    whole: bool = True
    errors: str = ""


class Errors(Enum):
    """Destinations of a process's standard error."""

    TOGETHER = subprocess.STDOUT
    APART = subprocess.PIPE
    DROPPED = subprocess.DEVNULL


def run(
    argv: Sequence[str],
    *,
    path: str | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float | None = None,
    errors: Errors = Errors.TOGETHER,
    keep: int = KEPT,
) -> Finished:
    """Run a process to its end, without input and without a shell.

    Parameters
    ----------
    argv : sequence of str
        The program and its arguments.
    path : str, optional
        The executable, if it is not the first word.
    env : mapping, optional
        All of its variables; by default, those of this process.
    seconds : float, optional
        Time limit in elapsed seconds.
    errors : Errors
        Destination of standard error.
    keep : int
        Kept size of each stream, in bytes.

    Raises
    ------
    OSError
        If the process cannot be started.
    subprocess.TimeoutExpired
        If the process exceeds the time limit.
    """
    end = None if seconds is None else time.monotonic() + seconds
    with subprocess.Popen(
        list(argv),
        executable=path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors.value,
        bufsize=0,
    ) as process:
        kept = {stream.fileno(): Printed(keep) for stream in (process.stdout, process.stderr) if stream}
        try:
            _drain(kept, process, end, seconds)
            while end is not None and process.poll() is None:
                _wait(process, end)
            process.wait()
        except BaseException:
            process.kill()
            process.wait()  # after Ctrl-C, `Popen` does not, and the process would keep its resources
            raise
    stdout, *apart = kept.values()
    return Finished(process.returncode, _lines(stdout), stdout.total, not stdout.left_out, "".join(map(_lines, apart)))


def _wait(process: subprocess.Popen[bytes], end: float) -> None:
    """Wait up to `LOOK` seconds for the end of a process; raise `subprocess.TimeoutExpired` at its deadline."""
    resume(process.pid)
    left = end - time.monotonic()
    try:
        process.wait(max(0.0, min(left, LOOK)))
    except subprocess.TimeoutExpired:
        if left <= LOOK:
            raise


def _drain(
    kept: Mapping[int, Printed], process: subprocess.Popen[bytes], end: float | None, seconds: float | None
) -> None:
    """Read descriptors until all are closed; a stopped process is continued."""
    waiting, count = poll(), len(kept)
    for descriptor in kept:
        waiting.register(descriptor, POLLIN)
    while count:
        left = LOOK if end is None else max(0.0, min(end - time.monotonic(), LOOK))
        ready = waiting.poll(left * 1000)
        if not ready:
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(process.args, seconds or 0)
            resume(process.pid)
        for descriptor, _ in ready:
            if data := os.read(descriptor, _CHUNK):
                kept[descriptor].add(data)
            else:
                waiting.unregister(descriptor)
                count -= 1


def _lines(printed: Printed) -> str:
    """Return the text with normalized line ends, as Python's text files have them."""
    return printed.text.replace("\r\n", "\n").replace("\r", "\n")


def read_file(path: Path, keep: int = KEPT) -> str:
    """Read a process's output from a file, without the middle of a long one."""
    kept = Printed(keep)
    with open(path, "rb", buffering=0) as file:
        while data := file.read(_CHUNK):
            kept.add(data)
    return _lines(kept)


def cut(text: str, limit: int) -> str:
    """Cut a text to `limit` characters; a line in its middle counts the omitted ones, also those of earlier cuts."""
    if len(text) <= limit:
        return text
    before = sum(int(found[1]) for found in _LEFT_OUT.finditer(text, limit // 2, len(text) - limit // 2))
    note, kept = "", limit
    while True:
        left_out = f"\n[... {len(text) - kept + before} characters left out ...]\n"
        if left_out == note:
            break
        note, kept = left_out, limit - len(left_out)
    half = kept // 2
    return f"{text[: kept - half]}{note}{text[len(text) - half :]}"


class Unreadable(ValueError):
    """A file has another type or size than expected; the message has the reason."""


def read_plain(path: Path, most: int, flags: int = 0, *, ends: bool = False) -> bytes:
    """Read a regular file.

    Parameters
    ----------
    path : Path
        The file.
    most : int
        Size limit in bytes.
    flags : int
        Further flags of ``open(2)``, such as ``os.O_NOFOLLOW``.
    ends : bool
        Whether to read a larger file without its middle; a line there counts the omitted bytes.

    Raises
    ------
    Unreadable
        If it is not a regular file, or is too large to be read as a whole.
    OSError
        If it cannot be opened.
    """
    # Opening a FIFO would otherwise block until it has a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path.name} is no plain file")
        if found.st_size > most and ends:
            half = most // 2
            head = file.read(half)
            file.seek(found.st_size - half)
            return head + left_out(found.st_size - 2 * half) + file.read(half)
        if found.st_size > most:
            raise Unreadable(f"{path.name} has {found.st_size} bytes, which is more than {most}")
        return file.read(found.st_size)  # `read` allocates a buffer of this size at once


_SECONDS = 30.0
_BEAT = 0.5  # seconds


def answer_of_helper(
    folder: Path, work: Callable[[Path], dict[str, Any] | None], pulse: Callable[[], None]
) -> dict[str, Any] | None:
    """Run work in a child and return its result; None if there is none, if the child fails, or if it takes too long."""
    child = os.fork()
    if child == 0:
        _work(folder, work)
    wait_for_helper(child, pulse)
    try:
        found: dict[str, Any] = json.loads((folder / "made.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _work(folder: Path, work: Callable[[Path], dict[str, Any] | None]) -> None:
    try:
        found = work(folder)
        if found is not None:
            part = folder / "made.part"
            part.write_text(json.dumps(found), "utf-8")
            os.replace(part, folder / "made.json")
    except BaseException:  # noqa: BLE001 (cells work without the result)
        traceback.print_exc()
    finally:
        os._exit(0)


def wait_for_helper(child: int, pulse: Callable[[], None] = lambda: None, seconds: float = _SECONDS) -> None:
    """Wait for a child, and kill it at the time limit; a stopped child is continued."""
    end, ended = time.monotonic() + seconds, os.pidfd_open(child)
    while not select.select([ended], [], [], _BEAT)[0]:
        pulse()
        resume(child)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            break
    os.close(ended)
    os.waitpid(child, 0)


_PREFIX = "fork-server-"


def helper_folder() -> Path:
    """Create a folder, in a fork server.

    Raises
    ------
    OSError
        If the disk is full or not writable.
    """
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getppid()}-"))


def remove_helper_folders() -> None:
    """Remove every folder that the fork server below this keeper has created."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getpid()}-*"):
        shutil.rmtree(path, ignore_errors=True)
