"""Running uv: with the index that the user has configured, and never with a project's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import uv

from harness.errors import PartUnavailable
from harness.protocol import printed
from harness.protocol.printed import Finished
from harness.toolkits.index import index_called, index_settings
from harness.toolkits.leftovers import at_work
from harness.web.address import redact

TIMEOUT = 1800
"""Seconds that uv may take."""

# uv ends with this process, however it ends: prctl(PR_SET_PDEATHSIG, SIGKILL), which outlives execve(2).
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


def run_uv(what: str, words: Sequence[str], folder: Path, *, built: bool = False) -> str:
    """Run uv, and give what it prints.

    Parameters
    ----------
    what : str
        ``CUDA 12.4``, for messages.
    words : sequence of str
        Its command line: ``pip compile -`` or ``venv PATH``. Those of ``pip`` are told the index.
    folder : Path
        A folder to work in (`harness.toolkits.leftovers.work_folder`).
    built : bool
        Whether it may build, and not only take wheels from the index.

    Raises
    ------
    PartUnavailable
        When it fails, is killed, or does not end within `TIMEOUT`; the message has uv's own.
    """
    project, temporary = folder / "project", folder / "tmp"
    for path in (project, temporary):
        path.mkdir(exist_ok=True)
    # uv takes the settings of the project that it is in, which anybody may have written: this one has none, and is in no other, though
    # the data folder may lie in one.
    for name in ("uv.toml", "pyproject.toml"):
        (project / name).touch()
    variables, options = index_settings()
    environ = {**os.environ, **variables, "TMPDIR": str(temporary)}
    environ.pop("VIRTUAL_ENV", None)

    def run(*words: str) -> Finished:
        argv = [sys.executable, "-I", "-S", "-c", _TIED, str(os.getpid()), uv.find_uv_bin()]
        argv += [*words, "--project", str(project)]
        return printed.run(argv, env=environ, seconds=TIMEOUT, errors=printed.Errors.APART)

    try:
        with at_work(folder, run("cache", "dir").said.strip()):
            done = run(*words, "--quiet", *(options if words[0] == "pip" else ()))
            if done.code < 0:
                raise PartUnavailable(f"{what}: uv was killed by signal {-done.code}; run it again")
    except subprocess.TimeoutExpired:
        raise PartUnavailable(f"{what}: no answer from {index_called()} within {TIMEOUT} s") from None
    errors = redact(done.errors)
    error = _first_the_cause(errors) if built else " ".join(errors.split())[-600:]
    if "hash mismatch" in error.lower():
        raise PartUnavailable(
            f"{what} is not installed: a wheel that was downloaded has another SHA-256 than it should have. {error}. "
            "Find out who changed it, or take another index"
        )
    if done.code and "No space left on device" in done.errors:
        raise PartUnavailable(
            f"{what} is not installed: no space is left on the device, in {folder.parent} or in uv's cache; make room, and run it again"
        )
    if done.code:
        how = "built or installed" if built else f"installed from {index_called()}"
        raise PartUnavailable(f"{what} cannot be {how}: {error}")
    if not done.whole:
        raise PartUnavailable(f"{what} cannot be installed: uv printed {done.total} bytes about it")
    return done.said


def _first_the_cause(error: str) -> str:
    """What uv says of a build that failed: the last line of the build's own words first, which is the exception."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    words = [line for line in lines if not line.startswith("hint:")]
    return f"{words[-1][:300]} (uv: {' '.join(' '.join(lines).split())[-400:]})" if words else ""
