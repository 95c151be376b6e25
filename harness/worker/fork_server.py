"""The fork server: a single-threaded process that has a backend loaded, and forks a child for each cell.

It speaks JSON lines over one socket: first a setup, then one job at a time, each answered by how the child ended. It
never touches a CUDA driver, so that every child starts from the same state. It is the reaper of all that its children leave
behind, which is why it runs one cell at a time: what is left afterwards belongs to that cell.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

from harness.backends import BACKENDS
from harness.nvidia import headers, ptxas
from harness.protocol import reads
from harness.protocol.backend import Backend, Ended
from harness.protocol.wire import Exit, Order, Ready, Setup
from harness.worker.child import run_child
from harness.worker.libraries import cuda_libraries

_BETWEEN_DRAINS = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


def serve(name: str, control: int) -> None:
    """Prepare a backend and serve jobs until the other side goes away."""
    # Whoever started this process may be killed: then nobody is left to end what the cell has started.
    signal.signal(signal.SIGTERM, _leave)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the scheduler's to handle
    channel = socket.socket(fileno=control)
    lines = channel.makefile("r", encoding="utf-8")
    line = lines.readline()
    if not line:
        return
    setup = Setup.from_line(line)
    backend, ready = _prepare(name, setup)
    ready.reads = reads.own_records(Path(os.environ.get(reads.VARIABLE, "")))
    channel.sendall(ready.to_line())
    if backend is None:
        return
    follower = reads.Follower()
    for line in lines:
        channel.sendall(_run(name, backend, setup, Order.from_line(line), channel, follower).to_line())


def _leave(_number: int, _frame: object) -> None:
    _end_descendants()
    os._exit(0)


def _prepare(name: str, setup: Setup) -> tuple[Backend | None, Ready]:
    try:
        module = importlib.import_module(f"harness.backends.{BACKENDS[name].module}")
        backend: Backend = module.backend
        ready = backend.prepare(setup)
        ready.observed["python"] = ".".join(map(str, sys.version_info[:3]))
        ready.observed["ptxas"] = ptxas.version(setup)
        ready.targets = ptxas.architectures(setup)
    except Ended as ended:
        return None, Ready(status=ended.status, reason=ended.reason)
    except Exception as error:  # noqa: BLE001 (whatever a library raises while it loads)
        words = traceback.format_exception_only(type(error), error)[-1].strip()
        reason = f"{name} cannot be loaded: {words}"
        return None, Ready(status="unavailable", reason=reason, log=traceback.format_exc())
    ready.observed.setdefault("headers", headers.version(setup))
    ready.libraries = cuda_libraries()
    ready.threads = len(os.listdir("/proc/self/task"))
    return backend, ready


def _run(
    name: str, backend: Backend, setup: Setup, order: Order, channel: socket.socket, follower: reads.Follower
) -> Exit:
    limits = order.limits
    reader, writer = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reader)
        channel.close()
        follower.begin_child()
        run_child(name, backend, setup, order, writer)
    os.close(writer)
    deadline = started + limits.seconds
    output, total, timed_out = _watch(child, reader, channel, deadline, limits.output, follower)
    if timed_out:
        _kill_group(child)
    _, status = os.waitpid(child, 0)
    seconds = time.monotonic() - started
    leftovers = _end_descendants()
    os.close(reader)
    return Exit(
        exit=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        timed_out=timed_out,
        wall=seconds,
        leftovers=leftovers,
        output=output.decode("utf-8", "replace"),
        output_total=total,
        reads=follower.taken(),
    )


def _watch(
    child: int, reader: int, channel: socket.socket, deadline: float, keep: int, follower: reads.Follower
) -> tuple[bytes, int, bool]:
    """Drain the child's output until it ends, the deadline passes, or nobody wants the result any more."""
    head, tail, total = bytearray(), bytearray(), 0
    ended = os.pidfd_open(child)
    os.set_blocking(reader, False)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(ended, select.POLLIN)
    poll.register(channel, select.POLLHUP | select.POLLRDHUP)
    timed_out = done = False
    try:
        while not done:
            left = deadline - time.monotonic()
            if left <= 0:
                timed_out = True
                break
            # Records of reads do not wake this process, they come too often: their pipe holds what comes in between.
            follower.drain()
            for fd, event in poll.poll(min(left, _BETWEEN_DRAINS) * 1000):
                if fd == channel.fileno():
                    # The scheduler is gone: nobody will ask for this cell again.
                    _leave(signal.SIGTERM, None)
                done = done or fd == ended
                if fd == reader:
                    if event & select.POLLHUP and not event & select.POLLIN:
                        poll.unregister(reader)
                    total += _drain(reader, head, tail, keep)
        total += _drain(reader, head, tail, keep)
    finally:
        os.close(ended)
    cut = total - len(head) - len(tail)
    middle = b"\n[... %d bytes left out ...]\n" % cut if cut > 0 else b""
    return bytes(head) + middle + bytes(tail), total, timed_out


def _drain(reader: int, head: bytearray, tail: bytearray, keep: int) -> int:
    """Read what is there, up to a megabyte; keep the first and the last half of `keep` bytes."""
    total, half = 0, keep // 2
    while total < 1 << 20:
        try:
            data = os.read(reader, 1 << 16)
        except BlockingIOError:
            break
        if not data:
            break
        total += len(data)
        room = max(0, half - len(head))
        head += data[:room]
        tail += data[room:]
        del tail[: max(0, len(tail) - half)]
    return total


def _kill_group(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it ended by itself, or has not become the leader of its group yet


def _end_descendants() -> int:
    """Kill everything that the cell left; orphans come to this process, so it ends when there are no children."""
    count = 0
    while True:
        found = _children()
        if not found:
            return count
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue
            count += 1


def _children() -> list[int]:
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(pid) == me]


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
