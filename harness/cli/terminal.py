"""Where output goes: a terminal with its width, or a log that has no edge to fold at."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console


def console_for(stream: TextIO, *, log_width: int = 200) -> Console:
    """A console that colours and folds on a terminal only (``NO_COLOR`` and ``FORCE_COLOR`` are rich's own)."""
    console = Console(file=stream, highlight=False, emoji=False)
    return console if console.is_terminal else Console(file=stream, highlight=False, emoji=False, width=log_width)
