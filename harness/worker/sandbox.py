"""Isolation of a cell's process: its own folder and processes, by Landlock and a seccomp filter.

Landlock is called through its three system calls, which have the same numbers on every architecture; the C library knows them by no name. The
filter is seccomp's (https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html). The kernel tells the broker of a call that neither
can decide through a descriptor (seccomp_unotify(2)); the broker changes the very file that it has looked at, so that nothing can be exchanged in between.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import platform
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from harness.protocol.messages import CLAIMED_LANDLOCK, Order, Setup
from harness.worker import processes
from harness.worker.system_calls import ARCHITECTURES, number_of, numbers_of

_SECCOMP, _SET_FILTER = number_of("seccomp"), 1
# Without it, kernels before 5.16 make a process with a filter slower throughout, against a fault of processors.
_SPEC_ALLOW, _NEW_LISTENER = 1 << 2, 1 << 3
_ACTION_AVAILABLE = 2

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, JMP|JEQ|K, JMP|JGE|K, RET|K
_ALLOW, _ERROR, _TELL = 0x7FFF0000, 0x00050000, 0x7FC00000
# Places in struct seccomp_data.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
_MACHINE = ARCHITECTURES.get(platform.machine(), 0)
_X32 = 0x40000000

_PRLIMIT = number_of("prlimit64")
# Each names a process first.
_TO_PROCESSES = numbers_of("kill", "rt_sigqueueinfo", "tkill", "tgkill", "rt_tgsigqueueinfo", "pidfd_open", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")  # fmt: skip
# Objects that outlive who made them, or belong to others: System V's shared memory, semaphores and queues, POSIX queues, keys.
_OUTLIVING = numbers_of(
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
    "add_key", "request_key", "keyctl",
)  # fmt: skip
# By it, other calls are made that no filter sees.
_UNSEEN = numbers_of("io_uring_setup")
# Rights of others are among the attributes that they change. Programs know file systems that have none.
_ATTRIBUTES = numbers_of("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat", "removexattrat")  # fmt: skip
# With the place of the owner among what they are given.
_OWNERS = {**dict.fromkeys(numbers_of("chown", "fchown", "lchown"), _SECOND), number_of("fchownat"): _THIRD}
# F_SETLEASE: opening a file with a lease on it waits for up to /proc/sys/fs/lease-break-time (45 s). F_SETOWN and
# F_SETOWN_EX: the kernel signals the owner, any process, and two of the calls name it in memory, where no filter looks.
_FCNTL, _COMMANDS = number_of("fcntl"), (1024, 8, 15)
# FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR; FIOSETOWN and SIOCSPGRP, which are F_SETOWN for sockets.
_IOCTL, _REQUESTS = number_of("ioctl"), (0x40086602, 0x40046602, 0x401C5820, 0x8901, 0x8902)


def has_seccomp() -> bool:
    """Return whether the kernel accepts such a filter, and cumatrix has one for this machine."""
    action = ctypes.c_uint32(_ERROR)
    return bool(_MACHINE) and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def broker_reports() -> bool:
    """Return whether the kernel can have another process decide on a call."""
    action = ctypes.c_uint32(_TELL)
    return has_seccomp() and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def filter_for(protected: Iterable[int]) -> bytes:
    """The filter's program.

    It refuses signals to the `protected`, and to everything at once (-1), and other priorities and processors for them or for all
    processes of a user; limits of other processes (prlimit(2)); objects that outlive a process; other owners, attributes, flags and leases
    of files, and processes that are signalled for them; and calls of other architectures or by io_uring, which would allow all of that.

    Parameters
    ----------
    protected : iterable of int
        Processes by their numbers, and process groups by negative ones.
    """
    refuse, allow = _step(_RETURN, _ERROR | errno.EPERM), _step(_RETURN, _ALLOW)
    absent, unknown = _step(_RETURN, _ERROR | errno.ENOSYS), _step(_RETURN, _ERROR | errno.ENOTSUP)
    protected = [*protected]
    named = [step for pid in (-1, *protected) for step in (_step(_EQUAL, pid & 0xFFFFFFFF, 0, 1), refuse)]
    to_process = [_step(_LOAD, _FIRST), *named, allow]
    # A group's number is its own here, not a negative one.
    either = [step for pid in protected for step in (_step(_EQUAL, abs(pid), 0, 1), refuse)]
    limits = [
        _step(_LOAD, _FIRST), _step(_EQUAL, 0, 0, 1), allow,  # this very process
        _step(_LOAD, _THIRD), _step(_EQUAL, 0, 0, 3), _step(_LOAD, _THIRD + 4), _step(_EQUAL, 0, 0, 1), allow,  # only asks
        refuse,
    ]  # fmt: skip
    program = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _MACHINE, 1, 0), absent, _step(_LOAD, _NUMBER)]
    program += [_step(_AT_LEAST, _X32, 0, 1), absent]  # no call of another machine has such a number

    def but(commands: Iterable[int]) -> list[bytes]:
        """Refuses these commands of a call that has many."""
        return [
            _step(_LOAD, _SECOND),
            *(step for each in commands for step in (_step(_EQUAL, each, 0, 1), refuse)),
            allow,
        ]

    bodies = {
        **dict.fromkeys((*_OUTLIVING, *_UNSEEN), (absent,)),
        **dict.fromkeys(_ATTRIBUTES, (unknown,)),
        _IOCTL: but(_REQUESTS),
        _FCNTL: but(_COMMANDS),
        **{call: _owners(place) for call, place in _OWNERS.items()},
        **dict.fromkeys(_TO_PROCESSES, to_process),
        **{
            call: [_step(_LOAD, _FIRST), _step(_EQUAL, kind + 2, 0, 1), refuse, _step(_LOAD, _SECOND), *either, allow]
            for call, kind in processes.BY_KIND.items()
        },
        _PRLIMIT: limits,
    }
    for call, body in bodies.items():
        program += [_step(_EQUAL, call, 0, len(body)), *body]
    return b"".join([*program, allow])


def _owners(place: int) -> list[bytes]:
    """Refuse any but this process's own user and group; -1 leaves either as it is."""
    steps = []
    for where, own in ((place, os.geteuid()), (place + 8, os.getegid())):
        steps += [
            _step(_LOAD, where),
            _step(_EQUAL, 0xFFFFFFFF, 2, 0),
            _step(_EQUAL, own, 1, 0),
            _step(_RETURN, _ERROR | errno.EPERM),
        ]
    return [*steps, _step(_RETURN, _ALLOW)]


def install_filter(program: bytes) -> bool:
    """Filter the calls of this process and of all that it starts; it must have given up gaining privileges."""
    return _install(program, _SPEC_ALLOW) == 0


def install_telling_filter(calls: Mapping[int, Sequence[int]]) -> int:
    """Have another process decide on these calls, whole or with certain commands; return the descriptor of its notifications, negative if that is impossible."""
    allow, tell = _step(_RETURN, _ALLOW), _step(_RETURN, _TELL)
    program = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _MACHINE, 1, 0), allow, _step(_LOAD, _NUMBER)]
    for call, commands in calls.items():
        which = [step for each in commands for step in (_step(_EQUAL, each, 0, 1), tell)]
        body = [_step(_LOAD, _SECOND), *which, allow] if commands else [tell]
        program += [_step(_EQUAL, call, 0, len(body)), *body]
    return _install(b"".join([*program, allow]), _SPEC_ALLOW | _NEW_LISTENER)


def _install(program: bytes, flags: int) -> int:
    text = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(text))
    return int(_libc.syscall(_SECCOMP, _SET_FILTER, flags, header))


def _step(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_SCOPED = 0b11  # abstract Unix sockets, signals

_WRITE_FILE, _TRUNCATE, _IOCTL_DEV = 1 << 1, 1 << 14, 1 << 15
# Removing and making of everything but devices, by the bits of the interface.
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER = (
    1 << bit for bit in range(4, 14)
)
_IN_FILE = _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_IN_FOLDER = (
    _IN_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM | _REFER
)
SIGNALS = 6
"""The first version that keeps signals within."""
_LEAST = 2
"""The first version lets nothing be moved from one folder to another, not even within what may be written."""


@cache  # asked once, in the process that cells are forked from
def version() -> int:
    """Version of the kernel's interface; 0 where there is none, or where it was not allowed to ask."""
    found = max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))
    return min(found, int(os.environ.get(CLAIMED_LANDLOCK, found)))


def restrict(folders: Iterable[str], files: Iterable[str]) -> bool:
    """Let this process write in these folders and to these files only, and reach no process but itself and what it starts.

    Reading is not restricted; what the kernel's version does not know is not either. The process must have given up
    gaining privileges (PR_SET_NO_NEW_PRIVS).

    Parameters
    ----------
    folders, files : iterable of str
        Those that are not there are left out.

    Returns
    -------
    bool
        Whether that is so now; nothing has changed where it is not.
    """
    handled, scoped = _handled(version())
    if not handled:
        return False
    attributes = struct.pack("=QQQ", handled, 0, scoped)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((folders, _IN_FOLDER), (files, _IN_FILE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        return bool(_libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _handled(found: int) -> tuple[int, int]:
    """Rights that are taken away, and scopes, in a version of the interface."""
    if found < _LEAST:
        return 0, 0
    handled = _IN_FOLDER | _MAKE_CHAR | _MAKE_BLOCK
    handled &= ~(_TRUNCATE if found < 3 else 0)
    handled &= ~(_IOCTL_DEV if found < 5 else 0)
    return handled, _SCOPED if found >= SIGNALS else 0


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = struct.pack("=Qi", rights, handle)
        _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)


_KEPT = 1 << 1
"""CAP_DAC_OVERRIDE: root compiles files that another user owns.

CAP_DAC_READ_SEARCH allows reading as well, but also opens files by their handle, past every folder (open_by_handle_at(2)).
"""
_VERSION = 0x20080522
_CAPBSET_READ, _CAPBSET_DROP = 23, 24


def give_up() -> bool:
    """Give up all other capabilities; the caller has set ``PR_SET_NO_NEW_PRIVS``, so no program brings them back.

    The kernel removes from the ambient set what leaves the permitted and the inheritable one.

    Returns
    -------
    bool
        False where the kernel refuses.
    """
    number = 0
    while _libc.prctl(_CAPBSET_READ, number, 0, 0, 0) >= 0:  # up to the last one that this kernel knows
        if not _KEPT >> number & 1:
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)  # an ordinary user may not, and has none to lose
        number += 1
    header = struct.pack("=Ii", _VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    if _libc.capget(header, sets):
        return False
    lower = [word & _KEPT for word in struct.unpack("=6I", sets.raw)[:3]]
    return bool(_libc.capset(header, struct.pack("=6I", *lower, 0, 0, 0)) == 0)


_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2 = map(number_of, ("chmod", "fchmod", "fchmodat", "fchmodat2"))
CALLS = numbers_of("chmod", "fchmod", "fchmodat", "fchmodat2")
"""The system calls."""
_HERE, _NOFOLLOW, _EMPTY_PATH = 0xFFFFFF9C, 0x100, 0x1000  # AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_LONGEST, _PAGE = 4096, 4096


def change(pid: int, call: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Do what a process asks for with one of these calls, if it is about something in these folders, or these themselves.

    Raises
    ------
    OSError
        With the error that the call is to have.
    """
    mode = arguments[2 if call in (_FCHMODAT, _FCHMODAT2) else 1] & 0o7777
    handle = _open(pid, call, arguments)
    try:
        if not within(handle, folders):
            raise PermissionError(errno.EPERM, "")
        os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


def within(handle: int, folders: Sequence[str]) -> bool:
    """Return whether an open file belongs to the cell; a file without a name cannot be anyone else's."""
    path = os.readlink(f"/proc/self/fd/{handle}")
    if os.fstat(handle).st_nlink == 0 or not path.startswith("/"):
        return True
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _open(pid: int, call: int, arguments: Sequence[int]) -> int:
    """A handle on what a process names in a call."""
    proc = f"/proc/{pid}"
    if call == _FCHMOD:
        return os.open(f"{proc}/fd/{descriptor(arguments[0])}", os.O_PATH | os.O_CLOEXEC)
    at, address = (_HERE, arguments[0]) if call == _CHMOD else (arguments[0] & 0xFFFFFFFF, arguments[1])
    flags = arguments[3] if call == _FCHMODAT2 else 0
    base = f"{proc}/cwd" if at == _HERE else f"{proc}/fd/{descriptor(at)}"
    path = _read(pid, address)
    if not path:
        if not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "")
        return os.open(base, os.O_PATH | os.O_CLOEXEC)
    # These mean the calling process.
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


def descriptor(value: int) -> int:
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


_FLOCK = number_of("flock")
# F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
LOCK_CALLS: dict[int, tuple[int, ...]] = {_FLOCK: (), _FCNTL: (6, 7, 37, 38)}
"""The system calls, with their commands; no commands mean the whole call. Each names a descriptor first."""


def check(pid: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Let a process lock or unlock a file in these folders; anything but a file or folder is allowed.

    A thread that replaces the file after the check may still lock the other one: it delays a waiter, and reaches nothing.

    Raises
    ------
    OSError
        When the file lies elsewhere: ``ENOLCK``, as of a file system that knows no locks, which programs go on without.
    """
    handle = os.open(f"/proc/{pid}/fd/{descriptor(arguments[0])}", os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and not within(handle, folders):
            raise OSError(errno.ENOLCK, "")
    finally:
        os.close(handle)


_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND
_NOTICE, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


def broker_available() -> bool:
    """Return whether the kernel notifies of calls, and lets a process read the arguments of those below it."""
    try:
        closed = int(_YAMA.read_text()) > 1
    except (OSError, ValueError):
        closed = False
    return broker_reports() and not closed


def calls(found: int) -> dict[int, tuple[int, ...]]:
    """The calls that the broker decides on, with a version of Landlock: all of each, or those with certain commands."""
    return {
        **dict.fromkeys(CALLS, ()),
        **LOCK_CALLS,
        **dict.fromkeys(processes.SCHEDULING, ()),
        **dict.fromkeys(() if found >= SIGNALS else processes.SIGNALS, ()),
    }


class Broker:
    """Decides for one cell; made before its child is forked.

    Parameters
    ----------
    folders : sequence of str
        Where modes may be changed and files locked, these folders themselves included.
    shared : sequence of str
        Further folders in which files may be locked.
    """

    def __init__(self, folders: Sequence[str], shared: Sequence[str] = ()) -> None:
        self._folders = tuple(map(os.path.realpath, folders))
        self._lockable = (*self._folders, *map(os.path.realpath, shared))
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1

    def begin_child(self) -> None:
        """In the child, before it gives up its descriptors: from now on, it and all that it starts have to ask."""
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = install_telling_filter(calls(version()))
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
            if call in CALLS:
                change(pid, call, arguments, self._folders)
            elif call in LOCK_CALLS:
                check(pid, arguments, self._lockable)
                flags = _GO_ON
            else:
                processes.check_call(pid, call, arguments)
                flags = _GO_ON  # its arguments are in registers, which cannot change meanwhile
        except OSError as error:
            code = error.errno or errno.EPERM
        try:
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, -code, flags))
        except OSError:
            pass  # as above

    def close(self) -> None:
        """Later requests are refused."""
        self._ours.close()
        if self._listener >= 0:
            os.close(self._listener)


_NO_NEW_PRIVILEGES = 38
# What a program may write to without leaving anything.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# What a driver writes to: the devices, memory that its processes share (/dev/shm), and the pipes of its server for several
# processes on one device (MPS). It names its threads through /proc/<pid>/task/<tid>/comm, and cuInit fails where it cannot:
# CUDA_ERROR_OPERATING_SYSTEM. /dev/dxg is the device under Windows.
_GPU = ("/dev/nvidia*", "/dev/nvidia-caps*/*", "/dev/dxg", "/proc")
_GPU_FOLDERS = ("/dev/shm", os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))  # noqa: S108 - nothing is made there

_libc = ctypes.CDLL(None, use_errno=True)


def confine(setup: Setup, order: Order, calls: bytes, records: str) -> None:
    """Take from this process, and from all that it starts, what it does not need to compile its cell.

    What the kernel cannot do is left out: ``cumatrix doctor`` says what that is.

    Parameters
    ----------
    setup, order
        The toolchain's and the cell's.
    calls : bytes
        From `filter_for`; empty for no filter.
    records : str
        Where records of reads go to (`harness.protocol.reads`); empty where nothing is followed.
    """
    _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    give_up()
    folders = [*own_folders(setup, order), *([order.steps] if order.steps else [])]
    files = [*_DEVICES, *([records] if records else [])]
    if setup.device:
        files += [path for pattern in _GPU for path in glob.glob(pattern)]
    restrict(folders, files)
    if calls:
        install_filter(calls)


def own_folders(setup: Setup, order: Order) -> list[str]:
    """Folders that a cell may change freely: their content is its own, or cannot be distinguished from it."""
    return [str(order.scratch), *_measured(), *(_GPU_FOLDERS if setup.device else ())]


def kept_from() -> tuple[list[str], list[str]]:
    """Describe what this kernel keeps cells from, and what it cannot."""
    found = version()
    words = {
        "writing outside of their folder": found >= 2,
        "looking into other processes": found >= 2,
        "cutting files short": found >= 3,
        "asking things of devices": found >= 5,
        "signals to other processes": found >= SIGNALS or broker_available(),
        "the priority and the processors of other processes": broker_available(),
        "limits of other processes, objects that outlive them, and owners of files": has_seccomp(),
        "modes and locks of files outside of their folder": broker_available(),
        "the rights of root, but for reading what other users own": True,
    }
    return [word for word, there in words.items() if there], [word for word, there in words.items() if not there]


def _measured() -> list[str]:
    """The folder of coverage.py's data, when it measures cumatrix's own tests."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    return [os.path.dirname(os.path.abspath(current.get_option("run:data_file")))] if current else []
