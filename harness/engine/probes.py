"""Asking an interpreter what only a process of its own can say: scripts of `harness.worker` that run by path, with any Python.

What a run imports takes as long as asking an interpreter what it has, and can be imported meanwhile. This module imports little itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import harness
from harness.diagnostics import one_line
from harness.libraries import LIBRARIES
from harness.protocol import process_output
from harness.protocol.codec import Message, WireError

SECONDS = 60
"""Time limit of a probe."""
_SCRIPTS = Path(harness.__file__).parent / "worker"

_Asked = tuple[str, str, tuple[str, ...], str]
_begun: dict[_Asked, Future[process_output.Finished]] = {}


def libraries() -> list[str]:
    """Distributions that an interpreter is asked about, with the modules imported from them."""
    return [
        f"{distribution}:{library.modules[0]}" if library.modules else distribution
        for library in LIBRARIES.values()
        for distribution in library.distributions
    ]


def begin_own(python: str | None) -> None:
    """Begin to ask cumatrix's own interpreter what it has, where no other one is named."""
    if python is None:
        asked = (sys.executable, "probe.py", tuple(libraries()), "PYTHONPATH")
        pool = ThreadPoolExecutor(1)
        _begun[asked] = pool.submit(_run, *asked)
        pool.shutdown(wait=False)  # it ends with what it was given


def finished(python: str, script: str, arguments: Sequence[str], *, without: str) -> process_output.Finished:
    """The output of a probe; that of one begun early, once.

    Raises
    ------
    OSError, ValueError
        When it cannot be started.
    subprocess.TimeoutExpired
        When it does not end.
    """
    asked = (python, script, tuple(arguments), without)
    begun = _begun.pop(asked, None)
    return begun.result() if begun else _run(*asked)


def _run(python: str, script: str, arguments: Sequence[str], without: str) -> process_output.Finished:
    argv = [python, "-s", str(_SCRIPTS / script), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != without}
    return process_output.run(argv, seconds=SECONDS, errors=process_output.Errors.APART, env=environ)


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
