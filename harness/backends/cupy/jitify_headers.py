"""Jitify's headers, found once for all cells of a toolchain.

Jitify finds what a program includes by compiling it again and again, one missing header at a time; with CUDA's larger headers
that takes a minute or two. CuPy keeps the headers that were found in its process, and on a user's machine from one process to
the next (``~/.cupy/jitify_cache``). Here they are found by a child that looks for nothing else, kept for each
toolchain together with the hash of every file that was read for them, and handed to CuPy's own table before any cell is forked,
if these files are still the same. They are texts by name: what a cell compiles to is the same without them, only later.

CuPy from 13.0 on fills its table before the first program: with Jitify's own headers and a few of its own by hand, then by
compiling a program that includes much of CUB. The first part is in the table that is kept. The second, which asks for a device and can
take longer than any cell may, is left out, on a real device too: each cell has a cache folder of its own, and would begin with it.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import hashlib
import json
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import native
from harness.protocol import process_output, reads
from harness.protocol.backend import Setup
from harness.protocol.codec import zipped

# What programs for the device include; one at a time, since what fails leaves nothing behind. Nothing comes first: what CuPy
# itself includes everywhere is then found even where each of the headers is refused.
_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h")
_PROGRAMS = ("", *(f"#include <{header}>\n" for header in _HEADERS))
_SCHEMA = 3
# Temporary folders; their files were made during the search.
_PASSING = (os.getcwd() + os.sep, "/proc/", "/sys/", "/dev/")
# Less than a worker may take to start.
_SECONDS = 240.0
_NOT_FOUND = "Jitify's headers could not all be found before this cell: it looked for the others itself, one at a time, which takes long"


def warm(
    setup: Setup, jitify: Any, identity: list[Any], attempt: Callable[[str], None]
) -> tuple[dict[bytes, bytes], list[str]]:
    """Fill the table of headers of this process's CuPy; return the added entries, and notes for the cell's reader.

    Parameters
    ----------
    setup : Setup
        The toolkit.
    jitify : module
        ``cupy.cuda.jitify``.
    identity : list
        Versions that the table depends on, in addition to the toolkit.
    attempt : callable
        Compiles a program as cells are compiled, which may fail.
    """
    key = json.dumps([_SCHEMA, identity, sys.version, setup.include, _HEADERS])
    kept = setup.tools / "jitify" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    found = _valid(kept)
    if found is None or found["left"]:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _find_once(kept, setup.include, jitify, attempt)
        found = _valid(kept)
    table = _decoded(found["table"]) if found else {}
    hand(jitify, table)
    if hasattr(jitify, "_init_module"):
        jitify._init_module = lambda: None
    return table, [_NOT_FOUND] if found is None or found["left"] else []


def hand(jitify: Any, table: dict[bytes, bytes]) -> None:
    """Put texts by name into CuPy's table of headers."""
    jitify._add_sources(table)


def _valid(kept: Path) -> dict[str, Any] | None:
    """The content of a file: the table, its sources, and the headers left to find; None if a file has changed since.

    Reading them again also informs the follower of this process (`harness.protocol.reads`) what its table depends on.
    """
    try:
        found = json.loads(kept.read_text("utf-8"))
        same = all(_hash(path) == digest for path, digest in found["files"].items())
        return found if same and {"table", "left"} <= found.keys() else None
    except (OSError, ValueError, KeyError):
        return None


def _decoded(table: dict[str, str]) -> dict[bytes, bytes]:
    return {base64.b64decode(name): base64.b64decode(text) for name, text in table.items()}


def _hash(path: str) -> str:
    """Hash of a file; what a directory or nothing is called otherwise."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except IsADirectoryError:
        return "directory"
    except OSError:
        return "missing"


def _find_once(kept: Path, include: Sequence[str], jitify: Any, attempt: Callable[[str], None]) -> None:
    """Have a child look for the headers, or wait for another worker's; in both cases no longer than `_SECONDS`."""
    end = time.monotonic() + _SECONDS
    with open(kept.with_suffix(".lock"), "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    return
                time.sleep(0.2)
        found = _valid(kept) or {"table": {}, "files": {}, "left": list(_PROGRAMS)}
        if not found["left"]:
            return
        child = os.fork()
        if child == 0:
            _find(kept, include, jitify, attempt, found)
        # Where it takes too long, each cell looks for itself, under its own deadline.
        process_output.wait_for_helper(child, seconds=end - time.monotonic())


def _begin(jitify: Any) -> None:
    """Have CuPy put into its table what it puts there by hand; what it goes on to compile ends at once, for want of a device."""
    if not hasattr(jitify, "_init_module"):
        return  # before 13.0 that happened when it was imported
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "CUPY_DISABLE_JITIFY_CACHE": "1"}
    begin, jitify._init_module = jitify._init_module, lambda: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            begin()
        except RuntimeError as error:
            if "GPU architecture" not in str(error):
                raise


def _all_of(include: Sequence[str]) -> list[str]:
    """Every file that may have been read, for a worker that nothing follows (one with a real device)."""
    return [str(path) for folder in include for path in sorted(Path(folder).rglob("*")) if path.is_file()]


def _find(
    kept: Path, include: Sequence[str], jitify: Any, attempt: Callable[[str], None], found: dict[str, Any]
) -> None:
    """In a child: look for what is left, and write down after each program what was found until then; never returns."""
    table, files, left = _decoded(found["table"]), found["files"], found["left"]
    original = jitify.jitify
    records = kept.with_suffix(f".{os.getpid()}.reads")
    # The records name themselves, since they were opened to be read, and are gone in a moment.
    passing = (*_PASSING, str(kept.parent) + os.sep)

    def keep(*arguments: Any) -> Any:
        handed = original(*arguments)
        table.update(zipped(handed[3], handed[2]))
        return handed

    try:
        records.touch()
        followed = reads.send_to(records)
        _begin(jitify)
        jitify._add_sources(table)
        jitify.jitify = keep
        while left:
            attempt(left.pop(0))
            read = reads.paths_of(records.read_bytes()) if followed else _all_of(include)
            files |= {path: _hash(path) for path in read if not path.startswith(passing)}
            encoded = {base64.b64encode(key).decode(): base64.b64encode(text).decode() for key, text in table.items()}
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps({"table": encoded, "files": files, "left": left}), "utf-8")
            os.replace(part, kept)
        records.unlink()
    except BaseException:  # noqa: BLE001 (no process is left to inform, and cells search for themselves)
        traceback.print_exc()
    finally:
        os._exit(0)


_VARIABLE = "CUMATRIX_NVRTC_TAP"


@dataclass(frozen=True)
class Call:
    """One call of ``nvrtcCompileProgram``: its result code, options and log."""

    result: int
    options: tuple[str, ...]
    log: str


def install(setup: Setup) -> None:
    """Load the tap for the whole process; before NVRTC, whose function it intercepts."""
    library = native.build(setup.tools, "libcumatrix_nvrtc_tap.so", native.source("nvrtc_tap.c"))
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def listen(file: Path) -> None:
    """Keep the calls of this process in `file` from now on."""
    os.environ[_VARIABLE] = str(file)


def heard(file: Path) -> list[Call]:
    """The calls that were kept; one that the process died in is not among them."""
    calls: list[Call] = []
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return calls
    place = 0

    def line() -> bytes:
        nonlocal place
        end = data.index(b"\n", place)
        text, place = data[place:end], end + 1
        return text

    def item() -> str:
        nonlocal place
        length = int(line())
        text, place = data[place : place + length], place + length + 1
        return text.decode(errors="replace")

    while place < len(data):
        _, result, count = line().split()
        options = tuple(item() for _ in range(int(count)))
        calls.append(Call(int(result), options, item()))
    return calls
