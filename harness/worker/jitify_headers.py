"""Jitify's headers, found once for all cells of a toolchain.

Jitify finds what a program includes by compiling it again and again, one missing header at a time; with CUDA's larger headers
that takes a minute or two. CuPy keeps the headers that were found in its process, and on a user's machine from one process to
the next (``~/.cupy/jitify_cache``). Here they are found by a child that looks for nothing else, kept for each
toolchain under a key of all that they depend on, and handed to CuPy's own table before any cell is forked. They are
texts by name: what a cell compiles to is the same with an empty table, only later.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backends.api import Setup

# What programs for the device include; one at a time, since what fails leaves nothing behind.
_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h")
_SCHEMA = 1
# Less than a worker may take to start.
_SECONDS = 240.0


def warm(setup: Setup, jitify: Any, identity: list[Any], compile: Callable[[str], None]) -> None:
    """Fill the table of headers of this process's CuPy.

    Parameters
    ----------
    setup : Setup
        The toolkit.
    jitify : module
        ``cupy.cuda.jitify``.
    identity : list
        Versions that the table depends on, beside the toolkit.
    compile : callable
        Compiles a program as cells are compiled, which may fail.
    """
    key = json.dumps([_SCHEMA, identity, sys.version, setup.include, _HEADERS, _stamp(setup)])
    kept = setup.tools / "jitify" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        _find_once(kept, jitify, compile)
    if kept.is_file():
        table = json.loads(kept.read_text("utf-8"))
        jitify._add_sources({base64.b64decode(key): base64.b64decode(text) for key, text in table.items()})


def _find_once(kept: Path, jitify: Any, compile: Callable[[str], None]) -> None:
    """Have a child look for the headers, or wait for another worker's; in both cases no longer than `_SECONDS`."""
    end = time.monotonic() + _SECONDS
    with open(kept.with_suffix(".lock"), "w") as lock:
        while not kept.is_file():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    return
                time.sleep(0.2)
        if kept.is_file():
            return
        child = os.fork()
        if child == 0:
            _find(kept, jitify, compile)
        ended = os.pidfd_open(child)
        if not select.select([ended], [], [], max(0.0, end - time.monotonic()))[0]:
            os.kill(child, signal.SIGKILL)  # then each cell looks for itself, under its own deadline
        os.close(ended)
        os.waitpid(child, 0)


def _find(kept: Path, jitify: Any, compile: Callable[[str], None]) -> None:
    """In a child: look for every header and write down what was found; never returns."""
    table: dict[bytes, bytes] = {}
    original = jitify.jitify

    def keep(*arguments: Any) -> Any:
        found = original(*arguments)
        table.update(zip(found[3], found[2], strict=True))
        return found

    try:
        jitify.jitify = keep
        for header in _HEADERS:
            compile(f"#include <{header}>\n")
        encoded = {base64.b64encode(key).decode(): base64.b64encode(text).decode() for key, text in table.items()}
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(encoded), "utf-8")
        os.replace(part, kept)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _stamp(setup: Setup) -> list[Any]:
    """What tells one state of the include directories from another."""
    stamps: list[Any] = []
    for folder in setup.include:
        home = Path(folder)
        stamps += [[str(path), path.stat().st_mtime_ns] for path in (home, *sorted(home.glob("*.h")))]
    return stamps
