"""What ends a command early: one signal, after which it tidies up undisturbed."""

from __future__ import annotations

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; a polite request, as of a CI job that is cancelled; a terminal that is closed."""


def interrupted_once() -> None:
    """Make the first of these signals a ``KeyboardInterrupt``, and let those after it pass.

    A second Ctrl-C while processes are ended and records are written would leave some of both behind; that takes seconds at most. What was
    ignored by whoever started the command (``nohup``) still is.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def undisturbed() -> None:
    """Let all of these signals pass from now on: Python would give them their first meaning back on its way out."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: object) -> None:
    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _pass)
    raise KeyboardInterrupt


def _pass(_number: int, _frame: object) -> None:
    """A handler, and not ``SIG_IGN``, which programs that are started would inherit."""
