"""Modes of files: what Landlock does not cover. A cell asks to change one, and the fork server does it, in the cell's own folders.

The kernel tells of such a call through a descriptor (seccomp_unotify(2)). The fork server changes the mode of the very file that it has
looked at, so that nothing can be exchanged in between.
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

from harness.worker import seccomp

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2 = 90, 91, 268, 452
_CALLS = (_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2)
_HERE, _NOFOLLOW, _EMPTY_PATH = 0xFFFFFF9C, 0x100, 0x1000  # AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_LONGEST, _PAGE = 4096, 4096
_NO_NEW_PRIVILEGES = 38
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


def available() -> bool:
    """Whether the kernel tells of calls, and lets a process read what those below it name."""
    try:
        closed = int(_YAMA.read_text()) > 1
    except (OSError, ValueError):
        closed = False
    return seccomp.tells() and not closed


class Modes:
    """Changes modes for one cell; made before its child is forked.

    Parameters
    ----------
    folders : sequence of str
        Where modes may be changed, these folders themselves included.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(map(os.path.realpath, folders))
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1

    def begin_child(self) -> None:
        """In the child, before it gives up its descriptors: from now on, it and all that it starts have to ask."""
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = seccomp.install_telling(_CALLS)
        if listener >= 0:
            socket.send_fds(self._theirs, [b"."], [listener])

    def begin(self) -> int:
        """In the parent: the descriptor to wait for; whenever there is something to read, `answer` is to be called."""
        self._theirs.close()
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
        try:
            self._change(pid, call, arguments)
            code = 0
        except OSError as error:
            code = error.errno or errno.EPERM
        try:
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, -code, 0))
        except OSError:
            pass  # as above

    def close(self) -> None:
        """Whoever still asks is refused."""
        self._ours.close()
        if self._listener >= 0:
            os.close(self._listener)

    def _change(self, pid: int, call: int, arguments: Sequence[int]) -> None:
        mode = arguments[2 if call in (_FCHMODAT, _FCHMODAT2) else 1] & 0o7777
        handle = _open(pid, call, arguments)
        try:
            if not self._within(handle):
                raise PermissionError(errno.EPERM, "")
            os.chmod(f"/proc/self/fd/{handle}", mode)
        finally:
            os.close(handle)

    def _within(self, handle: int) -> bool:
        """Whether what is open belongs to the cell; what has no name any more, or never had one, can be nobody else's."""
        path = os.readlink(f"/proc/self/fd/{handle}")
        if os.fstat(handle).st_nlink == 0 or not path.startswith("/"):
            return True
        return any(f"{path}/".startswith(f"{folder}/") for folder in self._folders)


def _open(pid: int, call: int, arguments: Sequence[int]) -> int:
    """A handle on what a process names in a call."""
    proc = f"/proc/{pid}"
    if call == _FCHMOD:
        return os.open(f"{proc}/fd/{_number(arguments[0])}", os.O_PATH | os.O_CLOEXEC)
    at, address = (_HERE, arguments[0]) if call == _CHMOD else (arguments[0] & 0xFFFFFFFF, arguments[1])
    flags = arguments[3] if call == _FCHMODAT2 else 0
    base = f"{proc}/cwd" if at == _HERE else f"{proc}/fd/{_number(at)}"
    path = _read(pid, address)
    if not path:
        if not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "")
        return os.open(base, os.O_PATH | os.O_CLOEXEC)
    # These mean whoever asks for them.
    for own in (b"/proc/self/", b"/proc/thread-self/"):
        if path.startswith(own):
            path = os.fsencode(f"{proc}/") + path[len(own) :]
    if path.startswith(b"/dev/fd/"):
        path = os.fsencode(f"{proc}/fd/") + path[8:]
    follow = os.O_NOFOLLOW if flags & _NOFOLLOW else 0
    if path.startswith(b"/"):
        return os.open(path, os.O_PATH | os.O_CLOEXEC | follow)
    folder = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC | follow, dir_fd=folder)
    finally:
        os.close(folder)


def _number(value: int) -> int:
    """A descriptor, as the kernel reads it."""
    number = ctypes.c_int(value & 0xFFFFFFFF).value
    if number < 0:
        raise OSError(errno.EBADF, "")
    return number


def _read(pid: int, address: int) -> bytes:
    """A path in another process's memory."""
    found = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while len(found) < _LONGEST:
            try:
                # The next page may be none of its.
                part = os.pread(memory.fileno(), _PAGE - address % _PAGE, address)
            except (OSError, OverflowError):
                part = b""
            if not part:
                raise OSError(errno.EFAULT, "")
            end = part.find(b"\0")
            if end >= 0:
                return found + part[:end]
            found, address = found + part, address + len(part)
    raise OSError(errno.ENAMETOOLONG, "")
