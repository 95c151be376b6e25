"""The fork server decides on some system calls of a cell: which files change their mode, which are locked, and which processes are rescheduled or, before Linux 6.12, signalled.

The kernel tells of such a call through a descriptor (seccomp_unotify(2)).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from harness.worker import landlock, locks, modes, process_calls, seccomp

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_NO_NEW_PRIVILEGES = 38
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


def available() -> bool:
    """Whether the kernel tells of calls, and lets a process read what those below it name."""
    try:
        closed = int(_YAMA.read_text()) > 1
    except (OSError, ValueError):
        closed = False
    return seccomp.tells() and not closed


def calls(found: int) -> dict[int, tuple[int, ...]]:
    """Which calls it decides on, with a version of Landlock: all of each, or those with certain commands."""
    return {
        **dict.fromkeys(modes.CALLS, ()),
        **locks.CALLS,
        **dict.fromkeys(process_calls.SCHEDULING, ()),
        **dict.fromkeys(() if found >= landlock.SIGNALS else process_calls.SIGNALS, ()),
    }


class Broker:
    """Decides for one cell; made before its child is forked.

    Parameters
    ----------
    folders : sequence of str
        Where modes may be changed and files locked, these folders themselves included.
    shared : sequence of str
        Where files may be locked, beside these.
    """

    def __init__(self, folders: Sequence[str], shared: Sequence[str] = ()) -> None:
        self._folders = tuple(map(os.path.realpath, folders))
        self._lockable = (*self._folders, *map(os.path.realpath, shared))
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1

    def begin_child(self) -> None:
        """In the child, before it gives up its descriptors: from now on, it and all that it starts have to ask."""
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = seccomp.install_telling(calls(landlock.version()))
        if listener >= 0:
            socket.send_fds(self._theirs, [b"."], [listener])

    def begin(self) -> int:
        """In the parent: the descriptor that can be read once the child has come so far; then call `listen`."""
        self._theirs.close()
        return self._ours.fileno()

    def listen(self) -> int:
        """The descriptor to wait for next: whenever it can be read, call `answer`. Negative where the kernel tells of no calls."""
        _, found, _, _ = socket.recv_fds(self._ours, 1, 1, socket.MSG_CMSG_CLOEXEC)
        self._listener = found[0] if found else -1
        return self._listener

    def answer(self) -> None:
        """Do what one process asks for, or refuse it."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:
            return  # it has ended meanwhile
        number, pid, _, call, _, _, *arguments = _NOTICE.unpack(notice)
        code, flags = 0, 0
        try:
            if call in modes.CALLS:
                modes.change(pid, call, arguments, self._folders)
            elif call in locks.CALLS:
                locks.check(pid, arguments, self._lockable)
                flags = _GO_ON
            else:
                process_calls.check(pid, call, arguments)
                flags = _GO_ON  # what it names stands in registers, which nobody else changes meanwhile
        except OSError as error:
            code = error.errno or errno.EPERM
        try:
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, -code, flags))
        except OSError:
            pass  # as above

    def close(self) -> None:
        """Whoever still asks is refused."""
        self._ours.close()
        if self._listener >= 0:
            os.close(self._listener)
