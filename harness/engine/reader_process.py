"""Processes that read what cells left, for `harness.engine.reader`: a line of JSON in, a line of JSON out.

One process imports everything once, and forks a reader whenever a runner asks for one: importing takes as long as reading some hundred cells.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import traceback
from pathlib import Path
from typing import Any

from harness.diagnostics import one_line
from harness.engine.collect import Remains, collect_outcome
from harness.protocol.messages import lower
from harness.records.files import ArtifactFolder

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4


def fork_readers(descriptor: int) -> None:
    """Fork a reader for each request, until the other side closes the socket.

    A request is a line of JSON with `memory` and `largest`, and the reader's socket. The answer is a byte, with a pidfd of the reader.

    Parameters
    ----------
    descriptor : int
        The socket of the requests.
    """
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0)  # no cell may look into this process or its readers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a reader that has ended leaves nothing behind
    with socket.socket(fileno=descriptor) as requests:
        while True:
            text, found, _, _ = socket.recv_fds(requests, 1 << 10, 1)
            if not text:
                return
            request = json.loads(text)
            host, child = os.getpid(), os.fork()
            if child == 0:
                requests.close()
                _read(found[0], host, **request)
            os.close(found[0])
            try:
                reader = os.pidfd_open(child)
            except ProcessLookupError:
                requests.sendall(b"!")  # it has ended already
                continue
            socket.send_fds(requests, [b"."], [reader])
            os.close(reader)


def _read(descriptor: int, host: int, memory: int, largest: int) -> None:
    """Answer every line of a socket until it ends, then exit; never returns.

    Parameters
    ----------
    descriptor : int
        The socket.
    host : int
        Process id of the parent; this process ends with it.
    memory : int
        Address space that this process may have, in bytes.
    largest : int
        Size of an answer that is too large, in bytes.
    """
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != host:
            return
        limit = lower(memory, resource.getrlimit(resource.RLIMIT_AS)[1])
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        with socket.socket(fileno=descriptor) as channel, channel.makefile("rb") as lines:
            for line in lines:
                channel.sendall(_answer(line, largest) + b"\n")
    finally:
        os._exit(0)


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
