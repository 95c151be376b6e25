"""One cell in its own process, forked from the fork server.

A cell also lists its imported modules without bytecode, and the fork server compiles them. Otherwise each cell would
compile them again if the library's installer compiles nothing.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import py_compile
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from harness.backends import load_backend
from harness.protocol import process_output, reads
from harness.protocol.backend import Backend, Crashed, Ended, Job
from harness.protocol.messages import EVERY_LIMIT, REPLY, Order, Rehearsal, Reply, Setup, limits_of_cell, lower
from harness.worker.processes import be_ended_first, close_others
from harness.worker.sandbox import Broker, confine

_LIST = "imported"
_MOST, _MOST_MODULES = 1 << 20, 10_000  # bytes, and names
_SECONDS = 10.0
"""Maximum delay of the next cell in seconds; the remaining modules are compiled after it."""


def tell(scratch: Path, known: int) -> None:
    """In a cell: list modules without bytecode, except for the first `known` modules of this process."""
    found = []
    # From the end: iterating writes reference counts, and every page shared with the fork server would be copied.
    for module in list(islice(reversed(sys.modules.values()), max(0, len(sys.modules) - known))):
        spec = getattr(module, "__spec__", None)
        source, compiled = getattr(spec, "origin", None), getattr(spec, "cached", None)
        if source and compiled and source.endswith(".py") and not os.path.exists(compiled):
            found.append(source)
    if found:
        (scratch / _LIST).write_text("\n".join(found), "utf-8", "surrogateescape")


def modules_named_in(scratch: Path) -> list[str]:
    """In the fork server: return the listed sources that are importable modules of this process."""
    try:
        handle = os.open(scratch / _LIST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with open(handle, "rb", buffering=0) as file:
        try:
            text = file.read(_MOST) or b""
        except OSError:
            return []  # not a regular file
    folders = tuple(os.path.realpath(folder) + os.sep for folder in sys.path if os.path.isdir(folder))
    modules = dict.fromkeys(name for name in os.fsdecode(text).replace("\0", "\n").split("\n") if name.endswith(".py"))
    names = map(os.path.realpath, islice(modules, _MOST_MODULES))
    return [name for name in names if name.endswith(".py") and name.startswith(folders)]


def compile_all(sources: Iterable[str]) -> None:
    """Compile sources in a separate process, so that they leave no state in this one."""
    child = os.fork()
    if child == 0:
        try:
            for source in sources:
                with suppress(Exception):  # an unwritable folder, or not Python
                    if not os.path.exists(importlib.util.cache_from_source(source)):
                        py_compile.compile(source, doraise=True)
        finally:
            os._exit(0)
    process_output.wait_for_helper(child, seconds=_SECONDS)


_STEMS = ("libnvrtc", "libnvvm", "libnvJitLink", "libcudart", "libcuda.so", "libnvptxcompiler")


def cuda_libraries(paths: Iterable[str]) -> list[str]:
    """Return NVIDIA's compilers and runtimes among a process's mapped files (`harness.protocol.reads.mapped`)."""
    return sorted(path for path in paths if os.path.basename(path).startswith(_STEMS))


_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def run_child(
    name: str,
    backend: Backend,
    setup: Setup,
    order: Order,
    output: int,
    calls: bytes,
    broker: Broker | None,
    gate: int = -1,
) -> None:
    """Compile one cell, write its `Reply` into its scratch folder and exit; never returns.

    Parameters
    ----------
    name, backend, setup, order
        The backend, and the request.
    output : int
        Descriptor for its output.
    calls : bytes
        The filter of system calls (`harness.worker.sandbox.filter_for`).
    broker : Broker or None
        The broker of further calls; None without one.
    gate : int
        Descriptor for the fork server's grant of a slot of the device; -1 without a device.
    """
    code, modules, cell = 70, len(sys.modules), os.getpid()
    try:
        if broker:
            broker.begin_child()
        _isolate(order, output, gate)
        confine(setup, order, calls, os.environ.get(reads.VARIABLE, ""))
        reply = _compile(name, backend, setup, order)
        # Processes that the program forked also get here; only the cell replies.
        if os.getpid() == cell:
            tell(order.scratch, modules)
            (order.scratch / "reply.part").write_bytes(reply.to_line())
            os.replace(order.scratch / "reply.part", order.scratch / REPLY)
        code = 0
    except BaseException:  # noqa: BLE001 (the process ends here, and prints the traceback)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).fflush(None)  # Jitify prints through C's stdout
        os._exit(code)


_GATE = 3


def _isolate(order: Order, output: int, gate: int) -> None:
    os.setsid()
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    be_ended_first()
    libc.prctl(_PR_SET_DUMPABLE, 1)  # the fork server is not dumpable; a cell may inspect its own memory
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if gate >= 0:
        os.dup2(gate, _GATE, inheritable=False)
    close_others(_GATE + (gate >= 0))  # above all the scheduler's socket
    os.chdir(order.scratch)
    os.umask(0o022)  # it determines the modes of files from linkers and programs
    for name in ("TMPDIR", "HOME"):
        os.environ[name] = str(order.scratch)
    tempfile.tempdir = None  # the worker may have cached its own
    if order.path:
        os.environ["PATH"] = order.path
    if order.visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = order.visible  # before anything loads the driver
    limits = order.limits
    effective = limits_of_cell(limits.memory, limits.rlimits)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, (soft, hard) in effective.items():
        resource.setrlimit(EVERY_LIMIT[name], (soft, hard))
    if "cpu" not in limits.rlimits:
        # A hard limit on processor time ends even a child that blocks all signals.
        cpu = lower(int(limits.seconds) * 4 + 60, effective["cpu"][1])
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))


def _compile(name: str, backend: Backend, setup: Setup, order: Order) -> Reply:
    job, reply = Job.of(order), Reply(status="built")
    started, waited = time.perf_counter(), 0.0

    def take_slot() -> None:
        nonlocal waited
        began = time.perf_counter()
        os.write(_GATE, b"?")
        os.read(_GATE, 1)
        waited += time.perf_counter() - began

    if setup.device:
        job.take_slot = take_slot
    try:
        (backend.execute if setup.device else backend.compile)(setup, job)
    except Ended as ended:
        reply.status, reply.reason, reply.stage = ended.status, ended.reason, ended.stage
        if isinstance(ended, Crashed):
            reply.signal = ended.signal
    except MemoryError:
        reply.status, reply.reason = "crashed", "out of memory, under the limit of each process (see --memory)"
    except Exception as error:  # noqa: BLE001 (a harness error, with its traceback in the log)
        words = traceback.format_exception_only(type(error), error)[-1].strip()
        job.say(traceback.format_exc())
        reply.status, reply.reason = "harness_error", f"cumatrix's {name} backend failed: {words}"
    reply.seconds = time.perf_counter() - started - waited
    if setup.device:
        _look_at_device(name, setup, order, job)
    loaded = reads.mapped()
    reads.note_mapped(loaded)
    reply.stages, reply.command, reply.notes = job.stages, job.command, job.notes
    reply.shared_steps = job.shared_steps
    reply.observed, reply.device, reply.artifact = job.observed, job.device, job.artifact
    reply.libraries = cuda_libraries(loaded)
    return reply


def _look_at_device(name: str, setup: Setup, order: Order, job: Job) -> None:
    """Read the used device from this process's driver, and run the sanitizer if requested."""
    from harness.nvidia.launch import Driver, DriverError

    try:
        driver = Driver(context=False)
        job.device.update(name=driver.name, compute_capability=driver.capability)
    except (Ended, DriverError) as error:
        job.notes.append(f"the device was not asked for its name again: {error}")
    if order.sanitizer and "launch" in job.stages:
        job.device["sanitizer"] = check_memory(name, setup, order)


_ERROR_COUNT = re.compile(r"ERROR SUMMARY: (\d+) error")
_MEMORY_ERROR = re.compile(r"^=+ ((?:Invalid|Program hit|Error|Warning|Target|Leaked).*?)\s*$", re.MULTILINE)
_NAMED = 3


def check_memory(name: str, setup: Setup, order: Order) -> dict[str, Any]:
    """Run the cell again under compute-sanitizer's memcheck (https://docs.nvidia.com/compute-sanitizer/).

    The sanitizer must start the process that it checks: a fresh interpreter, in its own folder.

    Returns
    -------
    dict
        ``tool`` and ``version``; ``errors``, their number, or None if it did not finish; ``found``, the first line of
        each of the first errors.
    """
    tool, scratch = order.sanitizer, order.scratch / "sanitizer"
    scratch.mkdir()
    log, job = scratch / "log", scratch / "job.json"
    job.write_bytes(Rehearsal(setup, replace(order, scratch=scratch)).to_line())
    package = Path(__file__).resolve().parents[1]
    boot = [sys.executable, "-s", str(package / "worker" / "boot.py"), str(package), name, str(job)]
    # It runs in the cell's process group and under the cell's deadline; its output belongs to the cell.
    subprocess.run([tool, "--tool", "memcheck", "--log-file", str(log), *boot], stdin=subprocess.DEVNULL, cwd=scratch)
    text = process_output.read_file(log) if log.is_file() else ""
    counted = _ERROR_COUNT.findall(text)
    return {
        "tool": "memcheck",
        "version": _sanitizer_version(tool),
        "errors": int(counted[-1]) if counted else None,
        "found": _memory_errors(text),
    }


def _memory_errors(text: str) -> list[str]:
    """Return the first lines of its report: "Invalid __global__ write of size 4 bytes"."""
    return list(dict.fromkeys(_MEMORY_ERROR.findall(text)))[:_NAMED]


def _sanitizer_version(tool: str) -> str:
    output = process_output.run([tool, "--version"], errors=process_output.Errors.DROPPED).output
    match = re.search(r"Version ([\d.]+)", output)
    return match[1] if match else ""


def run_once(name: str, file: str) -> None:
    """Load a backend and run one job in this process; the sanitizer reports how it ends."""
    rehearsal = Rehearsal.from_line(Path(file).read_bytes())
    backend = load_backend(name, rehearsal.setup)
    backend.prepare(rehearsal.setup)
    try:
        backend.execute(rehearsal.setup, Job.of(rehearsal.order))
    except Ended as ended:
        print(f"{ended.status}: {ended.reason}", file=sys.stderr)
