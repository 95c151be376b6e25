"""One cell, in a process of its own that was forked from the zygote."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from harness.backends.api import Backend, Crashed, Ended, Job, Setup

_MAX_FILE = 4 << 30

RLIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "data": resource.RLIMIT_DATA,
    "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}
"""Limits that users may set, by the names of ``ulimit`` and getrlimit(2)."""


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
    limits = request["limits"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _lower(resource.RLIMIT_FSIZE, _MAX_FILE)
    if limits["memory"]:
        _lower(resource.RLIMIT_AS, limits["memory"])
    # A hard limit on processor time ends even a child that holds off every signal of ours.
    _lower(resource.RLIMIT_CPU, int(limits["seconds"]) * 4 + 60)
    for name, value in limits["rlimits"].items():
        _lower(RLIMITS[name], value)


def _peak() -> int:
    """Resident memory of the largest process of the cell, in bytes."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) << 10


def _lower(which: int, value: int) -> None:
    """Lower a limit; one that the user has set lower stays."""
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def _compile(backend: Backend, setup: Setup, request: dict[str, Any]) -> dict[str, Any]:
    fields = request["job"]
    job = Job(**{**fields, "source": Path(fields["source"]), "scratch": Path(fields["scratch"])})
    started = time.perf_counter()
    reply: dict[str, Any] = {"status": "built", "reason": "", "signal": None, "stage": None}
    try:
        backend.compile(setup, job)
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
    from harness.worker.zygote import cuda_libraries

    reply.update(
        seconds=time.perf_counter() - started,
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
