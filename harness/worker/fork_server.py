"""The fork server: a single-threaded process with a loaded backend that forks one child per cell.

It speaks JSON lines over one socket: first a setup, then one job at a time, each answered by how the child ended; empty lines
in between say that it is still there. It never touches a CUDA driver, so that every child starts from the same state. It is
the reaper of all that its children leave behind, which is why it runs one cell at a time: what is left afterwards belongs to
that cell.
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
    """Prepare a backend and serve jobs until the other side goes away."""
    # The process that started this one may be killed: then nothing else ends the cell's processes.
    signal.signal(signal.SIGTERM, _leave)
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the scheduler's to handle
    # No cell may look into this process, where the kernel keeps it from that by nothing else.
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
    # What a cell's collector does not look at, it does not copy: of Numba's objects, a fifth of a cell's time.
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
    """Says now and then that this process is still there."""

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
    """Holds a cell of a real device before it loads, until the scheduler has a slot of the device for it.

    Parameters
    ----------
    channel : socket
        The scheduler's.

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
        """Return whether the cell waits for a slot; its deadline does not pass meanwhile."""
        return self._since > 0

    def ask(self) -> None:
        """Pass the request of a cell on."""
        self.ours.recv(1)
        self._since = time.monotonic()
        self.channel.sendall(SLOT)

    def grant(self) -> None:
        """Take the answer of the scheduler, and let the cell go on."""
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
    """The filter of system calls for cells, which refuses signals to this process, its keeper and the scheduler; empty without seccomp."""
    if not sandbox.has_seccomp():
        return b""
    keeper = os.getppid()
    above = [os.getpid(), keeper, -keeper]
    try:
        with open(f"/proc/{keeper}/stat", "rb") as file:
            above.append(int(file.read().rpartition(b")")[2].split()[1]))
    except OSError:
        pass  # /proc of another namespace: the scheduler is out of reach then
    return sandbox.filter_for(above)


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one has nothing to add
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
    """Hold what was imported against what was seen before anything was; the metadata of an editable install may be of another time than its code."""
    for name, build in setup.builds.items():
        module = sys.modules.get(build.module)
        if module is None:
            continue
        folder, build_folder = os.path.dirname(os.path.realpath(module.__file__ or "")), os.path.realpath(build.folder)
        # cuda.core gives its place to a package below it, made for one CUDA release (cuda/core/cu13).
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
        gate.grant()  # it comes in any case, and is no order
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
    """Drain the child's output until it ends, the scheduler is gone, or it has to be ended (True): at the deadline, or for its memory."""
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
            # The kernel may have ended one process of several.
            if left <= 0 or group.killed():
                ends = True
                break
            # Records of reads do not wake this process, they come too often: their pipe holds what comes in between.
            follower.drain()
            peak.look()
            pulse()
            for fd, event in poll.poll(min(left, _BETWEEN_DRAINS) * 1000):
                if fd == channel.fileno():
                    if gate and not event & gone:
                        gate.grant()
                        poll.modify(channel, gone)
                    else:
                        # The scheduler is gone: it will not ask for this cell again.
                        _leave(signal.SIGTERM, None)
                if gate and fd == gate.fileno():
                    poll.unregister(gate)  # a cell asks once
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
                        poll.unregister(decided)  # no process is left that could ask
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
            pass  # it ended by itself, or has not become the leader of its group yet
