"""Asking an interpreter what only a process of its own can say: scripts of `harness.worker` that run by path, with any Python."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import TypeVar

from harness.diagnostics import one_line
from harness.engine.probe_process import SECONDS, finished
from harness.protocol.message import Message, WireError

_WORDS = 300  # of what it printed on stderr

M = TypeVar("M", bound=Message)


class ProbeFailed(Exception):
    """There is no answer; the message says why."""


def ask(python: str, script: str, arguments: Sequence[str], kind: type[M], *, without: str) -> M:
    """Run a probe.

    Parameters
    ----------
    python : str
        The interpreter.
    script : str
        Its file, in ``harness/worker``.
    arguments : sequence of str
        What it is asked about.
    kind : type of Message
        What it answers.
    without : str
        A variable that it must not see.

    Raises
    ------
    ProbeFailed
        When it cannot be run, does not end, or answers anything else.
    """
    try:
        done = finished(python, script, arguments, without=without)
    except subprocess.TimeoutExpired:
        raise ProbeFailed(f"no answer within {SECONDS} s") from None
    except (OSError, ValueError) as error:
        raise ProbeFailed(str(error)) from None
    try:
        if done.code:
            raise WireError
        if not done.whole:
            raise WireError(f"it printed {done.total} bytes")
        answer: M = kind.from_line(done.said)
        return answer
    except WireError as error:
        code = done.code
        how = f"its process ended with {'signal' if code < 0 else 'exit code'} {abs(code)}" if code else str(error)
        words = one_line(done.errors.strip()[-_WORDS:])
        raise ProbeFailed(f"{how}: {words}" if words else how) from None
