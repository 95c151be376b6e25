"""Run a helper in a throw-away child so that it leaves no state in the fork server."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.protocol import process_output

_SECONDS = 30.0
_BEAT = 0.5  # seconds


def answer(
    folder: Path, work: Callable[[Path], dict[str, Any] | None], pulse: Callable[[], None]
) -> dict[str, Any] | None:
    """Have a child answer; None where it has no answer, fails, or takes too long.

    Parameters
    ----------
    folder : Path
        Where it may write.
    work : callable
        Called in the child with the folder.
    pulse : callable
        Called now and then.
    """
    child = os.fork()
    if child == 0:
        _work(folder, work)
    wait(child, pulse)
    try:
        found: dict[str, Any] = json.loads((folder / "made.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _work(folder: Path, work: Callable[[Path], dict[str, Any] | None]) -> None:
    try:
        found = work(folder)
        if found is not None:
            part = folder / "made.part"
            part.write_text(json.dumps(found), "utf-8")
            os.replace(part, folder / "made.json")
    except BaseException:  # noqa: BLE001 (cells do without)
        traceback.print_exc()
    finally:
        os._exit(0)


def wait(child: int, pulse: Callable[[], None] = lambda: None, seconds: float = _SECONDS) -> None:
    """Wait for a child, and end it when it takes too long; one that is stopped goes on.

    Parameters
    ----------
    child : int
        The process.
    pulse : callable
        Called now and then.
    seconds : float
        How long it may take.
    """
    end, ended = time.monotonic() + seconds, os.pidfd_open(child)
    while not select.select([ended], [], [], _BEAT)[0]:
        pulse()
        process_output.resume(child)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            break
    os.close(ended)
    os.waitpid(child, 0)


_PREFIX = "fork-server-"


def make() -> Path:
    """A new folder, in a fork server.

    Raises
    ------
    OSError
        Where there is no room.
    """
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getppid()}-"))


def remove_all() -> None:
    """Remove every folder that the fork server below this keeper has made."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getpid()}-*"):
        shutil.rmtree(path, ignore_errors=True)
