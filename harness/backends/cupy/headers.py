"""CUDA headers for CuPy (from CUDA_PATH or from wheels) and for Jitify, located once per toolchain.

CuPy adds its own include directories after the user's, in a different order in almost every series. This module decides
which headers CuPy finds: those of a toolkit under CUDA_PATH, or no toolkit at all next to the wheels of
``cupy-cuda12x[ctk]``. CuPy searches wheels from 13.3 on.

Jitify finds the headers of a program by compiling it repeatedly, one missing header at a time. With CUDA's larger
headers this takes a minute or two. CuPy caches these headers in its process and, on a user's machine, across processes
(``~/.cupy/jitify_cache``). Here, a child finds them once per toolchain. They are stored with the hash of every file
that was read for them. If these files are unchanged, the headers are added to CuPy's own table before any cell is
forked. The table maps names to texts: without it, a cell compiles to the same result, only later.

From 13.0 on, CuPy fills its table before the first program. It adds Jitify's own headers and a few of its own directly,
then compiles a program that includes much of CUB. The stored table contains the first part. The second part needs a
device and can take longer than a cell's time limit, so it is skipped, on a real device too: each cell has its own cache
folder, and would begin with this compilation.
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
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from harness import native
from harness.backends.nvrtc import macros
from harness.libraries import runtime_wheel
from harness.nvidia.pch import Compile, Precompiled, behind
from harness.protocol import process_output, reads
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported
from harness.protocol.codec import zipped

_HEADER = "cuda_runtime_api.h"


def find(setup: Setup) -> Path:
    """Decide where CuPy searches for headers, before it is imported; return the folder of headers that it must find."""
    if not setup.wheels:
        # If the headers' release differs from the compiler's, CuPy knows only the headers' toolkit.
        os.environ["CUDA_PATH"] = str(Path(setup.include[0]).parent)
        return Path(setup.include[0])
    for name in ("CUDA_PATH", "CUDA_HOME"):
        os.environ.pop(name, None)
    major = setup.headers.split(".")[0]
    name = runtime_wheel(int(major))
    try:
        wheel = distribution(name)
    except PackageNotFoundError:
        raise Unavailable(f"CUDA's headers were to come from {name}, which is not installed") from None
    if wheel.version.split(".")[:2] != setup.headers.split("."):
        raise Unavailable(f"CUDA {setup.headers}'s headers were to come from {name}, which is {wheel.version}")
    return Path(str(wheel.locate_file(f"nvidia/{'cuda_runtime' if int(major) < 13 else f'cu{major}'}/include")))


def hide_toolkits(setup: Setup, environment: Any, version: tuple[int, ...], headers: Path) -> None:
    """Hide every toolkit from CuPy, including those in ``/usr/local``, if it is to use wheels.

    Parameters
    ----------
    environment : module
        ``cupy._environment``.
    version : tuple of int
        CuPy's version.
    headers : Path
        The folder that `find` returned.
    """
    if setup.wheels:
        # From CUDA 13 on, the wheels share one folder, which CuPy 14 takes for a toolkit.
        whole = version >= (14, 0) and headers.parent.name.startswith("cu1")
        environment._cuda_path = str(headers.parent) if whole else None


def added(core: Any, compiler: Any) -> list[str]:
    """Return the include directories that CuPy adds to every program, in order; empty before 13.0, without a list.

    A child queries CuPy, because CuPy caches the answer in its process, and a cell may hide the toolkit
    (`without_toolkit`).
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(_include_folders(core, compiler)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    process_output.wait_for_helper(child)
    with open(reading, "rb") as pipe:
        reply = pipe.read()
    if not reply:
        raise Unavailable("CuPy died when it was asked for its include directories")
    folders, error = json.loads(reply)
    if error:
        raise Unavailable(f"CuPy finds no headers: {error}")
    return list(folders)


def _include_folders(core: Any, compiler: Any) -> tuple[list[str], str]:
    """Return CuPy's include directories, or its error message if it finds none."""
    if not hasattr(core, "assemble_cupy_compiler_options"):
        return [], ""
    try:
        options = core.assemble_cupy_compiler_options(())
    except RuntimeError as error:
        return [], str(error)
    options += getattr(compiler, "_get_extra_include_dir_opts", tuple)()
    return [option.removeprefix("-I") for option in options if option.startswith("-I")], ""


def without_toolkit(setup: Setup, core: Any, compiler: Any) -> str:
    """Hide every toolkit and its headers from CuPy, as on a machine with only the driver.

    Call this in a cell, before CuPy searches for headers.

    Parameters
    ----------
    setup : Setup
        The worker's setup.
    core, compiler : module
        ``cupy._core.core`` and ``cupy.cuda.compiler``.

    Returns
    -------
    str
        CuPy's error message if it compiles nothing without a toolkit; empty if it uses its bundled headers.

    Raises
    ------
    Unsupported
        If a wheel in CuPy's environment has the headers: CuPy finds them without any toolkit.
    """
    name = runtime_wheel(setup.version[0])
    try:
        wheel = distribution(name)
    except PackageNotFoundError:
        pass
    else:
        raise Unsupported(f"CUDA's headers lie in CuPy's own environment ({name} {wheel.version}), toolkit or not")
    for variable in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        os.environ.pop(variable, None)
    from cupy import _environment

    _environment._cuda_path = None
    if pathfinder := sys.modules.get("cuda.pathfinder"):
        # CuPy 14 searches with pathfinder, also in /usr/local, which may contain a toolkit.
        pathfinder.find_nvidia_header_directory = lambda _library: None  # type: ignore[attr-defined]
    return _include_folders(core, compiler)[1]


def check(folders: list[str], headers: Path, setup: Setup) -> None:
    """Raise if CuPy finds CUDA's headers in another place than the required one.

    Raises
    ------
    Unavailable
        CuPy 14.1 and later prefer the headers of a wheel in their environment, of any release, to CUDA_PATH's.
    """
    found = next((folder for folder in folders if Path(folder, _HEADER).is_file()), None)
    if folders and (found is None or not os.path.samefile(found, headers)):
        raise Unavailable(
            f"CuPy takes CUDA's headers from {found}, not from CUDA {setup.headers}: "
            "ask for that release, or use an environment without nvidia-cuda-runtime"
        )


class WithHeader:
    """Wraps CuPy's NVRTC module, and compiles a program with its precompiled header if there is one."""

    def __init__(self, nvrtc: Any, setup: Setup, job: Job, precompiled: Precompiled) -> None:
        self._nvrtc, self._setup, self._job, self._precompiled = nvrtc, setup, job, precompiled
        self._texts: dict[int, tuple[str, str]] = {}
        self._instead: dict[int, int] = {}
        self._logs: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._nvrtc, name)
        if not name.startswith("get"):
            return found
        return lambda *given: found(*(self._instead.get(each, each) for each in given[:1]), *given[1:])

    def createProgram(self, source: str, name: str, texts: Sequence[str], names: Sequence[str]) -> int:
        program: int = self._nvrtc.createProgram(source, name, texts, names)
        if not names:
            self._texts[program] = source, name
        return program

    def addNameExpression(self, program: int, name: str) -> None:
        self._texts.pop(program, None)  # name expressions need the program's own compilation
        self._nvrtc.addNameExpression(program, name)

    def getProgramLog(self, program: int) -> str:
        log: str = self._nvrtc.getProgramLog(self._instead.get(program, program))
        return behind(self._logs[program], log) if program in self._logs else log

    def destroyProgram(self, program: int) -> None:
        other = self._instead.pop(program, None)
        if other is not None:
            self._nvrtc.destroyProgram(other)
        self._nvrtc.destroyProgram(program)

    def compileProgram(self, program: int, options: Sequence[str]) -> None:
        refused = self._compiled_early(program, options)
        if refused is not None:
            raise refused
        if program not in self._instead:
            self._nvrtc.compileProgram(program, options)

    def _compiled_early(self, program: int, options: Sequence[str]) -> Exception | None:
        """Compile a program with its precompiled header, if there is one.

        Return NVRTC's exception if NVRTC refuses the program.
        """
        if program not in self._texts:
            return None
        (source, name), given = self._texts[program], macros(self._job.definitions)
        early = self._precompiled.early(self._setup, self._job, source.encode("utf-8"), options, given)
        if early is None:
            return None
        other = self._nvrtc.createProgram(early.text.decode("utf-8"), name, (), ())
        refused, made = None, b""
        try:
            self._nvrtc.compileProgram(other, early.options)
            made = bytes(self._nvrtc.getPTX(other))
        except self._nvrtc.NVRTCError as error:
            refused = error
        compiled = refused is None or "COMPILATION" in str(refused)
        if not compiled or not early.usable(str(self._nvrtc.getProgramLog(other)), made):
            self._nvrtc.destroyProgram(other)
            return None
        self._instead[program], self._logs[program] = other, early.log
        return refused


def built_by(nvrtc: Any) -> Compile:
    """Return the `Compile` function that `Precompiled` requires, on top of CuPy's NVRTC module."""

    def built(text: bytes, name: str, options: Sequence[str]) -> tuple[bool, str]:
        program = nvrtc.createProgram(text.decode("utf-8"), name, (), ())
        try:
            try:
                nvrtc.compileProgram(program, tuple(options))
            except nvrtc.NVRTCError:
                return False, ""
            return True, str(nvrtc.getProgramLog(program))
        finally:
            nvrtc.destroyProgram(program)

    return built


# Headers that programs for the device include. Each one is compiled separately, because a failed compilation stores
# nothing. The empty program comes first, so that CuPy's own includes are found even if every header is refused.
_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "cooperative_groups.h")
_PROGRAMS = ("", *(f"#include <{header}>\n" for header in _HEADERS))
_SCHEMA = 3
# Temporary folders; the search itself created their files.
_PASSING = (os.getcwd() + os.sep, "/proc/", "/sys/", "/dev/")
# Less than a worker's time limit for its start.
_SECONDS = 240.0
_NOT_FOUND = "Jitify's headers could not all be found before this cell: it looked for the others itself, one at a time, which takes long"


def warm(
    setup: Setup, jitify: Any, identity: list[Any], attempt: Callable[[str], None]
) -> tuple[dict[bytes, bytes], list[str]]:
    """Fill the header table of this process's CuPy; return the added entries, and notes for the cell's record.

    Parameters
    ----------
    setup : Setup
        The toolkit.
    jitify : module
        ``cupy.cuda.jitify``.
    identity : list
        Versions that the table depends on, in addition to the toolkit.
    attempt : callable
        Compiles a program as a cell is compiled; may fail.
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
    """Add texts by name to CuPy's header table."""
    jitify._add_sources(table)


def _valid(kept: Path) -> dict[str, Any] | None:
    """Read a stored table with its sources and remaining headers; return None if a source file has changed.

    Reading the sources also tells the follower of this process (`harness.protocol.reads`) which files the table depends
    on.
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
    """Return the hash of a file, or a fixed text for a directory or a missing file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except IsADirectoryError:
        return "directory"
    except OSError:
        return "missing"


def _find_once(kept: Path, include: Sequence[str], jitify: Any, attempt: Callable[[str], None]) -> None:
    """Find the headers in a child, or wait for another worker that does; both take at most `_SECONDS`."""
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
        # After that time, each cell finds its headers itself, within its own time limit.
        process_output.wait_for_helper(child, seconds=end - time.monotonic())


def _begin(jitify: Any) -> None:
    """Make CuPy add its built-in entries to its table.

    The compilation that follows stops immediately without a device.
    """
    if not hasattr(jitify, "_init_module"):
        return  # before 13.0, CuPy did this at import
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
    """Return every file that may have been read, for a worker without a follower (one with a real device)."""
    return [str(path) for folder in include for path in sorted(Path(folder).rglob("*")) if path.is_file()]


def _find(
    kept: Path, include: Sequence[str], jitify: Any, attempt: Callable[[str], None], found: dict[str, Any]
) -> None:
    """In a child: process the remaining headers, and store the table after each program; never return."""
    table, files, left = _decoded(found["table"]), found["files"], found["left"]
    original = jitify.jitify
    records = kept.with_suffix(f".{os.getpid()}.reads")
    # The file of reads lists itself, because it is opened for reading, and is deleted soon.
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
    """Load the tap into the process, before NVRTC, whose function it intercepts."""
    library = native.build(setup.tools, "libcumatrix_nvrtc_tap.so", native.source("nvrtc_tap.c"))
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def listen(file: Path) -> None:
    """Record this process's following calls in `file`."""
    os.environ[_VARIABLE] = str(file)


def heard(file: Path) -> list[Call]:
    """Return the recorded calls; a call in which the process died is missing."""
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
