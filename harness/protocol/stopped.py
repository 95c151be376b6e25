"""Children that a signal has stopped (SIGSTOP, SIGTSTP): they go on, so that their parent does not wait for the deadline."""

from __future__ import annotations

import os
import signal

LOOK = 1.0
"""Seconds between two looks."""


def resume(child: int) -> None:
    """Continue a child process if it was stopped since the last call."""
    try:
        if os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOHANG):
            os.kill(child, signal.SIGCONT)
    except (ChildProcessError, ProcessLookupError):
        pass  # it has ended
