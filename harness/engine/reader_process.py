"""The process that reads what cells left, for `harness.engine.reader`: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import ctypes
import json
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from harness.diagnostics import one_line
from harness.engine.collect import Remains, collect_outcome
from harness.protocol.limits import lower
from harness.records.artifact_folder import ArtifactFolder

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def serve(memory: int, largest: int) -> None:
    """Answer what is asked on standard input until that ends.

    Parameters
    ----------
    memory : int
        Address space that this process may have, in bytes.
    largest : int
        Size of an answer that is too large, in bytes.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_DUMPABLE, 0)  # no cell may look into this process
    limit = lower(memory, resource.getrlimit(resource.RLIMIT_AS)[1])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(_answer(line, largest) + b"\n")
        sys.stdout.buffer.flush()


def _answer(line: bytes, largest: int) -> bytes:
    try:
        remains = Remains.from_line(line)
        keep = ArtifactFolder(Path(remains.keep)) if remains.keep else None
        outcome = collect_outcome(remains, keep)
        text = json.dumps({"problem": "", "outcome": outcome.to_json(), "unkept": keep.unkept if keep else {}}).encode()
    except MemoryError:
        return _problem("it takes too much memory")
    except Exception as error:  # noqa: BLE001 (whatever a stranger's files do to what reads them)
        return _problem(one_line(traceback.format_exception_only(type(error), error)[-1]))
    return text if len(text) <= largest else _problem(f"{len(text)} bytes are to be kept of it, more than {largest}")


def _problem(words: str) -> bytes:
    answer: dict[str, Any] = {"problem": words}
    return json.dumps(answer).encode()
