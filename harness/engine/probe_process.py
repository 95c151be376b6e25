"""Processes of probes (`harness.engine.probes`): one may begin before anybody can read its answer.

What a run imports takes as long as asking an interpreter what it has, and can be imported meanwhile. This module imports little itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import harness
from harness.libraries import LIBRARIES
from harness.protocol import printed

SECONDS = 60
"""How long a probe may take."""
_SCRIPTS = Path(harness.__file__).parent / "worker"

_Asked = tuple[str, str, tuple[str, ...], str]
_begun: dict[_Asked, Future[printed.Finished]] = {}


def libraries() -> list[str]:
    """What an interpreter is asked about: distributions, with the modules that are imported from them."""
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


def finished(python: str, script: str, arguments: Sequence[str], *, without: str) -> printed.Finished:
    """What a probe has said; of one that was begun, once.

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


def _run(python: str, script: str, arguments: Sequence[str], without: str) -> printed.Finished:
    argv = [python, "-s", str(_SCRIPTS / script), *arguments]
    environ = {name: value for name, value in os.environ.items() if name != without}
    return printed.run(argv, seconds=SECONDS, errors=printed.Errors.APART, env=environ)
