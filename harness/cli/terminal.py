"""Where output goes, a terminal with its width or a log that has no edge to fold at; and how it is told to end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console


def console_for(stream: TextIO, *, log_width: int = 200) -> Console:
    """A console that colours and folds on a terminal only (``NO_COLOR`` and ``FORCE_COLOR`` are rich's own)."""
    console = Console(file=stream, highlight=False, emoji=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, emoji=False, width=log_width)


@contextmanager
def terminable() -> Iterator[None]:
    """Treat a polite request to end (a CI job that is cancelled) like Ctrl-C."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
