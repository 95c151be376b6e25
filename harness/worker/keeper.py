"""Stands above a fork server: whatever becomes of that one, nothing that it or its cells have started outlives it."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from harness.protocol import own_folder
from harness.worker.processes import become_reaper, close_others, end_descendants


def keep() -> None:
    """Fork: the child returns, to be the fork server; the parent waits for it, ends what is left below, and ends as it did.

    A fork server that is stopped would never be heard of again: it is ended.
    """
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the scheduler's to handle
    signal.signal(signal.SIGTERM, _leave)
    server = os.fork()
    if server == 0:
        return
    close_others()  # the fork server's end of the socket is the only one
    status = _wait(server)
    _end_all()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 70)


def _wait(server: int) -> int:
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid != server:
            continue
        if not os.WIFSTOPPED(status):
            return status
        print(f"it was stopped by signal {os.WSTOPSIG(status)}", file=sys.stderr, flush=True)
        os.kill(server, signal.SIGKILL)


def _end_all() -> None:
    """End what is left below, and remove its folders.

    No further request to end interrupts that: it would wait for the locks that this has taken. There is one for each thread of the scheduler
    that ends, one after the other (prctl(2), PR_SET_PDEATHSIG).
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    own_folder.remove_all()


def _leave(_number: int, _frame: FrameType | None) -> None:
    _end_all()
    os._exit(0)
