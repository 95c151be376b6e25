"""The fork server: a single-threaded process with a loaded backend that forks one child per cell.

It exchanges JSON lines over one socket. The first line is the setup. After that, each line is a job, and the reply
describes how the child ended; empty lines in between are heartbeats. The fork server never touches a CUDA driver, so
that every child starts from the same state. It is the reaper of all processes that its children leave behind. It
therefore runs one cell at a time: every remaining process belongs to that cell.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

from harness.backends import load_backend
from harness.nvidia import includes, tools
from harness.protocol import reads
from harness.protocol.backend import Ahead, Backend, Ended, Job, Unavailable
from harness.protocol.messages import SLOT, Exit, Order, Ready, Setup
from harness.protocol.process_output import Printed
from harness.worker import sandbox
from harness.worker.child import compile_all, cuda_libraries, modules_named_in, run_child
from harness.worker.processes import Cgroup, Peak, become_reaper, end_descendants
from harness.worker.sandbox import own_folders

_BETWEEN_DRAINS, _BETWEEN_BEATS = 0.05, 0.5  # seconds
_AT_ONCE = 1 << 20  # bytes
_PR_SET_DUMPABLE = 4


def serve(name: str, control: int) -> None:
    """Prepare a backend and serve jobs until the other side closes the socket."""
    # If the process that started this one is killed, nothing else ends the cell's processes.
    signal.signal(signal.SIGTERM, _leave)
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the scheduler handles Ctrl-C
    # Cells may not inspect this process; some kernels have no other protection.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)
    channel = socket.socket(fileno=control)
    lines = channel.makefile("r", encoding="utf-8")
    line = lines.readline()
    if not line:
        return
    setup = Setup.from_line(line)
    group = Cgroup.entered(setup.cgroup)
    backend, ready = _prepare(name, setup)
    ready.reads = reads.own_records(Path(os.environ.get(reads.VARIABLE, "")))
    channel.sendall(ready.to_line())
    if backend is None:
        return
    follower, calls = reads.Follower(), _filter()
    sandbox.version()
    # Frozen objects are not traversed by a cell's collector and their pages not copied: with Numba, that saves a fifth
    # of a cell's time.
    gc.freeze()
    gc.enable()
    for line in lines:
        order = Order.from_line(line)
        ended = _run(name, backend, setup, order, channel, follower, calls, group)
        imported = modules_named_in(order.scratch)
        channel.sendall(ended.to_line())
        if imported:
            compile_all(imported)


class _Pulse:
    """Sends a heartbeat at most every `_BETWEEN_BEATS` seconds."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._last = channel, time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._last < _BETWEEN_BEATS:
            return
        self._last = now
        try:
            self._channel.send(b"\n", socket.MSG_DONTWAIT)
        except OSError:
            pass  # the reader is busy or gone, which is handled elsewhere


class _Gate:
    """Blocks a cell before it loads on a real device until the scheduler grants a slot of the device.

    Parameters
    ----------
    channel : socket
        The scheduler's socket.

    Attributes
    ----------
    waited : float
        Seconds that the cell has waited.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.ours, self.theirs = socket.socketpair()
        self.waited, self._since = 0.0, 0.0

    def fileno(self) -> int:
        return self.ours.fileno()

    @property
    def waits(self) -> bool:
        """Return whether the cell waits for a slot; that time does not count towards its deadline."""
        return self._since > 0

    def ask(self) -> None:
        """Forward the request of a cell."""
        self.ours.recv(1)
        self._since = time.monotonic()
        self.channel.sendall(SLOT)

    def grant(self) -> None:
        """Receive the scheduler's grant, and unblock the cell."""
        if self.channel.recv(len(SLOT)) != SLOT:
            _leave(signal.SIGTERM, None)  # the scheduler is gone
        self.waited, self._since = time.monotonic() - self._since, 0.0
        try:
            self.ours.send(b".")
        except OSError:
            pass  # the cell has ended

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def _filter() -> bytes:
    """Return the system call filter for cells, which protects this process, its keeper and the scheduler from signals.

    The filter is empty without seccomp.
    """
    if not sandbox.has_seccomp():
        return b""
    keeper = os.getppid()
    above = [os.getpid(), keeper, -keeper]
    try:
        with open(f"/proc/{keeper}/stat", "rb") as file:
            above.append(int(file.read().rpartition(b")")[2].split()[1]))
    except OSError:
        pass  # /proc of another namespace: the scheduler is out of reach
    return sandbox.filter_for(above)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal has no effect
    end_descendants()
    os._exit(0)


def _prepare(name: str, setup: Setup) -> tuple[Backend | None, Ready]:
    try:
        backend = load_backend(name, setup)
        ready = backend.prepare(setup)
        _hold_builds(setup, ready)
        ready.observed["python"] = ".".join(map(str, sys.version_info[:3]))
        if not (setup.bundled or setup.rocm):
            ready.observed["ptxas"] = tools.version(setup)
            ready.targets = tools.architectures(setup)
    except Ended as ended:
        return None, Ready(status=ended.status, reason=ended.reason)
    except Exception as error:  # noqa: BLE001 (whatever a library raises while it loads)
        words = traceback.format_exception_only(type(error), error)[-1].strip()
        reason = f"{name} cannot be loaded: {words}"
        return None, Ready(status="unavailable", reason=reason, log=traceback.format_exc())
    ready.observed.setdefault("headers", includes.version(setup))
    ready.libraries = cuda_libraries(reads.mapped())
    ready.threads = len(os.listdir("/proc/self/task"))
    return backend, ready


def _hold_builds(setup: Setup, ready: Ready) -> None:
    """Check that modules come from the folders that the probe found, and record their own versions.

    The metadata of an editable install may be older than its code.
    """
    for name, build in setup.builds.items():
        module = sys.modules.get(build.module)
        if module is None:
            continue
        folder, build_folder = os.path.dirname(os.path.realpath(module.__file__ or "")), os.path.realpath(build.folder)
        # cuda.core replaces itself by a subpackage for one CUDA release (cuda/core/cu13).
        if folder != build_folder and not folder.startswith(build_folder + os.sep):
            raise Unavailable(f"{name} was to be imported from {build.folder}, and came from {folder}")
        key = name.replace("-", "_")
        if key in ready.observed:
            ready.observed[key] = str(getattr(module, "__version__", build.version))


def _run(
    name: str,
    backend: Backend,
    setup: Setup,
    order: Order,
    channel: socket.socket,
    follower: reads.Follower,
    calls: bytes,
    group: Cgroup,
) -> Exit:
    limits, pulse = order.limits, _Pulse(channel)
    if isinstance(backend, Ahead) and not setup.device:
        backend.ahead(setup, Job.of(order), order.alike, pulse)
    shared = [order.steps] if order.steps else []
    decides = sandbox.Broker(own_folders(setup, order), shared) if calls and sandbox.broker_available() else None
    reader, writer = os.pipe()
    gate = _Gate(channel) if setup.device else None
    group.begin()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        follower.begin_child()
        run_child(name, backend, setup, order, writer, calls, decides, gate.theirs.fileno() if gate else -1)
    os.close(writer)
    deadline = started + limits.seconds
    printed, peak = Printed(limits.output), Peak(child)
    ends = _watch(child, reader, channel, deadline, printed, peak, follower, pulse, decides, group, gate)
    killed, no_memory = group.killed(), group.exceeded()
    if ends:
        _kill_group(child)
    _, status, used = os.wait4(child, 0)
    seconds = time.monotonic() - started - (gate.waited if gate else 0.0)
    leftovers = end_descendants(pulse)
    if gate:
        gate.close()
    if gate and gate.waits:
        gate.grant()  # the grant arrives in any case, and is not an order
    if decides:
        decides.close()  # no earlier: a call without an answer continues
    os.close(reader)
    return Exit(
        exit=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        timed_out=ends and not killed,
        wall=seconds,
        leftovers=leftovers,
        output=printed.text,
        output_total=printed.total,
        peak_bytes=max(used.ru_maxrss << 10, peak.bytes),
        reads=follower.taken(),
        no_memory=no_memory,
        machine_full=killed and not no_memory,
    )


def _watch(
    child: int,
    reader: int,
    channel: socket.socket,
    deadline: float,
    printed: Printed,
    peak: Peak,
    follower: reads.Follower,
    pulse: _Pulse,
    decides: sandbox.Broker | None,
    group: Cgroup,
    gate: _Gate | None = None,
) -> bool:
    """Drain the child's output until it ends; return True if it must be ended, at the deadline or for its memory."""
    ended = os.pidfd_open(child)
    os.set_blocking(reader, False)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(ended, select.POLLIN)
    gone = select.POLLHUP | select.POLLRDHUP
    poll.register(channel, gone)
    if gate:
        poll.register(gate, select.POLLIN)
    begun, decided = decides.begin() if decides else -1, -1
    if decides:
        poll.register(begun, select.POLLIN)
    ends = done = False
    try:
        while not done:
            left = deadline + (gate.waited if gate else 0.0) - time.monotonic()
            if gate and gate.waits:
                left = _BETWEEN_DRAINS
            # The kernel may have ended one of several processes.
            if left <= 0 or group.killed():
                ends = True
                break
            # Records of reads do not wake this process, as they are too frequent; the pipe buffers them.
            follower.drain()
            peak.look()
            pulse()
            for fd, event in poll.poll(min(left, _BETWEEN_DRAINS) * 1000):
                if fd == channel.fileno():
                    if gate and not event & gone:
                        gate.grant()
                        poll.modify(channel, gone)
                    else:
                        # The scheduler is gone and will not request this cell again.
                        _leave(signal.SIGTERM, None)
                if gate and fd == gate.fileno():
                    poll.unregister(gate)  # a cell requests once
                    poll.modify(channel, gone | select.POLLIN)
                    gate.ask()
                done = done or fd == ended
                if fd == begun and decides:
                    poll.unregister(begun)
                    decided = decides.listen()
                    if decided >= 0:
                        poll.register(decided, select.POLLIN)
                if fd == decided and decides:
                    if event & select.POLLIN:
                        decides.answer()
                    else:
                        poll.unregister(decided)  # no process is left to notify of
                if fd == reader:
                    if event & select.POLLHUP and not event & select.POLLIN:
                        poll.unregister(reader)
                    printed.drain(reader, _AT_ONCE)
        printed.drain(reader, _AT_ONCE)
    finally:
        os.close(ended)
    return ends


def _kill_group(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it ended by itself, or is not the leader of its group yet
