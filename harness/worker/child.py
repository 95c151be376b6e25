"""One cell, in a process of its own that was forked from the fork server."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from harness.protocol import reads
from harness.protocol.backend import Backend, Crashed, Ended, Job, Setup
from harness.protocol.limits import EVERY_LIMIT, limits_of_cell, lower


def run_child(backend: Backend, setup: Setup, request: dict[str, Any], output: int) -> None:
    """Compile one cell, write ``reply.json`` into its scratch folder and exit; never returns."""
    code = 70
    try:
        _isolate(request, output)
        reply = _compile(backend, setup, request)
        scratch = Path(request["job"]["scratch"])
        (scratch / "reply.part").write_text(json.dumps(reply), "utf-8")
        os.replace(scratch / "reply.part", scratch / "reply.json")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        ctypes.CDLL(None).fflush(None)  # Jitify prints through C's stdout
        os._exit(code)


def _isolate(request: dict[str, Any], output: int) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    scratch = request["job"]["scratch"]
    os.chdir(scratch)
    for name in ("TMPDIR", "HOME"):
        os.environ[name] = scratch
    tempfile.tempdir = None  # the worker may have asked for its own
    if request.get("path"):
        os.environ["PATH"] = request["path"]
    if request.get("visible"):
        os.environ["CUDA_VISIBLE_DEVICES"] = request["visible"]  # before anything loads the driver
    limits = request["limits"]
    effective = limits_of_cell(limits["memory"], limits["rlimits"])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, (soft, hard) in effective.items():
        resource.setrlimit(EVERY_LIMIT[name], (soft, hard))
    if "cpu" not in limits["rlimits"]:
        # A hard limit on processor time ends even a child that holds off every signal of ours.
        cpu = lower(int(limits["seconds"]) * 4 + 60, effective["cpu"][1])
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))


def _peak() -> int:
    """Resident memory of the largest process of the cell, in bytes."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) << 10


def _compile(backend: Backend, setup: Setup, request: dict[str, Any]) -> dict[str, Any]:
    fields = request["job"]
    job = Job(**{**fields, "source": Path(fields["source"]), "scratch": Path(fields["scratch"])})
    started = time.perf_counter()
    reply: dict[str, Any] = {"status": "built", "reason": "", "signal": None, "stage": None}
    try:
        (backend.execute if setup.device else backend.compile)(setup, job)
    except Ended as ended:
        reply.update(status=ended.status, reason=ended.reason, stage=ended.stage)
        if isinstance(ended, Crashed):
            reply["signal"] = ended.signal
    except MemoryError:
        reply.update(status="crashed", reason="out of memory, under the limit that was set")
    except Exception as error:
        words = traceback.format_exception_only(type(error), error)[-1].strip()
        job.say(traceback.format_exc())
        reply.update(status="harness_error", reason=f"cumatrix's {request['backend']} backend failed: {words}")
    from harness.worker.fork_server import cuda_libraries

    seconds = time.perf_counter() - started
    reads.note_mapped()
    if setup.device:
        _look_at_device(setup, request, job)
    reply.update(
        seconds=seconds,
        stages=job.stages,
        command=job.command,
        notes=job.notes,
        observed=job.observed,
        device=job.device,
        artifact=job.artifact,
        libraries=cuda_libraries(),
        peak_bytes=_peak(),
    )
    return reply


def _look_at_device(setup: Setup, request: dict[str, Any], job: Job) -> None:
    """Ask the driver of this very process which device it was, and the sanitizer where it is wanted."""
    from harness.nvidia.driver import Driver, DriverError
    from harness.worker import sanitize

    try:
        driver = Driver(context=False)
        job.device.update(name=driver.name, compute_capability=driver.capability)
    except (Ended, DriverError) as error:
        job.notes.append(f"the device was not asked for its name again: {error}")
    if request.get("sanitizer") and "launch" in job.stages:
        job.device["sanitizer"] = sanitize.check(request["sanitizer"], setup, request)
