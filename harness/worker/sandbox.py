"""Isolation of a cell's process: its own folder and processes, by Landlock and a seccomp filter.

Landlock is used through its three system calls, which have the same numbers on every architecture, as the C library has
no functions for them. The filter is seccomp's
(https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html). For calls that neither can decide, the
kernel notifies the broker through a descriptor (seccomp_unotify(2)). The broker changes the same open file that it has
checked, so the file cannot be exchanged in between.
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
# Without it, kernels before 5.16 slow the whole filtered process down, to mitigate a processor vulnerability.
_SPEC_ALLOW, _NEW_LISTENER = 1 << 2, 1 << 3
_ACTION_AVAILABLE = 2

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, JMP|JEQ|K, JMP|JGE|K, RET|K
_ALLOW, _ERROR, _TELL = 0x7FFF0000, 0x00050000, 0x7FC00000
# Offsets in struct seccomp_data.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD, _FOURTH = 0, 4, 16, 24, 32, 40
_MACHINE = ARCHITECTURES.get(platform.machine(), 0)
_X32 = 0x40000000

_PRLIMIT = number_of("prlimit64")
# The first argument of each is a process.
_TO_PROCESSES = numbers_of("kill", "rt_sigqueueinfo", "tkill", "tgkill", "rt_tgsigqueueinfo", "pidfd_open", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")  # fmt: skip
# Objects that outlive their creator or belong to other processes: System V shared memory, semaphores and queues, POSIX
# queues, keys.
_OUTLIVING = numbers_of(
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop", "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
    "add_key", "request_key", "keyctl",
)  # fmt: skip
# It makes other calls that no filter sees.
_UNSEEN = numbers_of("io_uring_setup")
# Attributes include access rights of other users. Programs cope with file systems without attributes.
_ATTRIBUTES = numbers_of("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat", "removexattrat")  # fmt: skip
# Calls with the offset of their owner argument.
_OWNERS = {**dict.fromkeys(numbers_of("chown", "fchown", "lchown"), _SECOND), number_of("fchownat"): _THIRD}
# F_SETLEASE: opening a file with a lease waits for up to /proc/sys/fs/lease-break-time (45 s). F_SETOWN and
# F_SETOWN_EX: the kernel signals the owner, which may be any process, and two of the calls pass it in memory that a
# filter cannot read.
_FCNTL, _COMMANDS = number_of("fcntl"), (1024, 8, 15)
# FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR; FIOSETOWN and SIOCSPGRP, which equal F_SETOWN for sockets.
_IOCTL, _REQUESTS = number_of("ioctl"), (0x40086602, 0x40046602, 0x401C5820, 0x8901, 0x8902)


def has_seccomp() -> bool:
    """Return whether the kernel supports seccomp's error action, and cumatrix has a filter for this machine."""
    action = ctypes.c_uint32(_ERROR)
    return bool(_MACHINE) and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def broker_reports() -> bool:
    """Return whether the kernel can let another process decide about a call."""
    action = ctypes.c_uint32(_TELL)
    return has_seccomp() and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def filter_for(protected: Iterable[int]) -> bytes:
    """Return the filter's program, which refuses:

    - signals to the `protected` processes and to all processes at once (-1)
    - changes of priority and processors for the `protected` processes, or for all processes of a user
    - limits of other processes (prlimit(2))
    - objects that outlive a process
    - changes of owners, attributes, flags and leases of files, and of the processes that receive their signals
    - calls of other architectures or through io_uring, which would bypass the filter

    Parameters
    ----------
    protected : iterable of int
        Process ids, and negative ids of process groups.
    """
    refuse, allow = _step(_RETURN, _ERROR | errno.EPERM), _step(_RETURN, _ALLOW)
    absent, unknown = _step(_RETURN, _ERROR | errno.ENOSYS), _step(_RETURN, _ERROR | errno.ENOTSUP)
    protected = [*protected]
    named = [step for pid in (-1, *protected) for step in (_step(_EQUAL, pid & 0xFFFFFFFF, 0, 1), refuse)]
    to_process = [_step(_LOAD, _FIRST), *named, allow]
    # These calls take a group's number as a positive value.
    either = [step for pid in protected for step in (_step(_EQUAL, abs(pid), 0, 1), refuse)]
    limits = [
        _step(_LOAD, _FIRST), _step(_EQUAL, 0, 0, 1), allow,  # the caller
        _step(_LOAD, _THIRD), _step(_EQUAL, 0, 0, 3), _step(_LOAD, _THIRD + 4), _step(_EQUAL, 0, 0, 1), allow,  # reads
        refuse,
    ]  # fmt: skip
    program = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _MACHINE, 1, 0), absent, _step(_LOAD, _NUMBER)]
    program += [_step(_AT_LEAST, _X32, 0, 1), absent]  # x32 calls; no other calls of this machine have such numbers

    def but(commands: Iterable[int]) -> list[bytes]:
        """Refuse these commands of a call with many commands."""
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
    """Refuse all owners except this process's own user and group; -1 leaves either unchanged."""
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
    """Filter the calls of this process and of all that it starts; PR_SET_NO_NEW_PRIVS must be set."""
    return _install(program, _SPEC_ALLOW) == 0


def install_telling_filter(calls: Mapping[int, Sequence[int]]) -> int:
    """Let another process decide about these calls, as a whole or for certain commands.

    Returns
    -------
    int
        Descriptor of the notifications; negative on failure.
    """
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
# Rights to remove and create everything but devices, by the bits of the interface.
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER = (
    1 << bit for bit in range(4, 14)
)
_IN_FILE = _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_IN_FOLDER = (
    _IN_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM | _REFER
)
SIGNALS = 6
"""First version that restricts signals."""
_LEAST = 2
"""Version 1 forbids moving files between folders, even between writable ones."""


@cache  # cached in the process that forks cells
def version() -> int:
    """Return the version of the kernel's Landlock interface; 0 if it is missing or access to it is denied."""
    found = max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))
    return min(found, int(os.environ.get(CLAIMED_LANDLOCK, found)))


def restrict(folders: Iterable[str], files: Iterable[str]) -> bool:
    """Restrict writes to these folders and files, and access to processes to this one and its descendants.

    Reading is not restricted, nor is anything that the kernel's version does not support. PR_SET_NO_NEW_PRIVS must be
    set.

    Parameters
    ----------
    folders, files : iterable of str
        Writable paths; missing ones are skipped.

    Returns
    -------
    bool
        Whether the restriction is in force; if not, nothing has changed.
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
    """Return the restricted rights and scopes of a version of the interface."""
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

CAP_DAC_READ_SEARCH also permits reading, but in addition opens files by their handle, which bypasses all folders
(open_by_handle_at(2)).
"""
_VERSION = 0x20080522
_CAPBSET_READ, _CAPBSET_DROP = 23, 24


def give_up() -> bool:
    """Drop all other capabilities; the caller has set ``PR_SET_NO_NEW_PRIVS``, so no program regains them.

    The kernel removes capabilities from the ambient set when they leave the permitted or the inheritable set.

    Returns
    -------
    bool
        False if the kernel refuses.
    """
    number = 0
    while _libc.prctl(_CAPBSET_READ, number, 0, 0, 0) >= 0:  # up to the last capability of this kernel
        if not _KEPT >> number & 1:
            _libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)  # fails for an ordinary user, who has none to lose
        number += 1
    header = struct.pack("=Ii", _VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    if _libc.capget(header, sets):
        return False
    lower = [word & _KEPT for word in struct.unpack("=6I", sets.raw)[:3]]
    return bool(_libc.capset(header, struct.pack("=6I", *lower, 0, 0, 0)) == 0)


_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2 = map(number_of, ("chmod", "fchmod", "fchmodat", "fchmodat2"))
CALLS = numbers_of("chmod", "fchmod", "fchmodat", "fchmodat2")
"""Calls that change modes."""
_HERE, _NOFOLLOW, _EMPTY_PATH = 0xFFFFFF9C, 0x100, 0x1000  # AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_LONGEST, _PAGE = 4096, 4096


def change(pid: int, call: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Perform a process's mode change if its file is in one of these folders or is one of them.

    Raises
    ------
    OSError
        With the error that the call returns.
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
    """Return whether an open file belongs to the cell; a file without a name is always the cell's."""
    path = os.readlink(f"/proc/self/fd/{handle}")
    if os.fstat(handle).st_nlink == 0 or not path.startswith("/"):
        return True
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _open(pid: int, call: int, arguments: Sequence[int]) -> int:
    """Open the file that a process names in a call."""
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
    # These refer to the calling process.
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
    """Convert an argument to a descriptor as the kernel does."""
    number = ctypes.c_int(value & 0xFFFFFFFF).value
    if number < 0:
        raise OSError(errno.EBADF, "")
    return number


def _read(pid: int, address: int) -> bytes:
    """Read a path from another process's memory."""
    found = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while len(found) < _LONGEST:
            try:
                # The next page may not be mapped.
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
"""System calls with their commands; no commands mean the whole call. The first argument of each is a descriptor."""


def check(pid: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Check that a process locks or unlocks a file in these folders; other kinds of files are allowed.

    A thread that replaces the file after the check may still lock another file; that only delays other processes.

    Raises
    ------
    OSError
        If the file is outside of the folders: ``ENOLCK``, as from a file system without locks, which programs tolerate.
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
    """Return whether the kernel reports calls, and lets a process read the memory of its descendants."""
    try:
        closed = int(_YAMA.read_text()) > 1
    except (OSError, ValueError):
        closed = False
    return broker_reports() and not closed


def calls(found: int) -> dict[int, tuple[int, ...]]:
    """Return the calls that the broker decides, by Landlock version: as a whole, or with certain commands."""
    return {
        **dict.fromkeys(CALLS, ()),
        **LOCK_CALLS,
        **dict.fromkeys(processes.SCHEDULING, ()),
        **dict.fromkeys(() if found >= SIGNALS else processes.SIGNALS, ()),
    }


class Broker:
    """Decides about calls of one cell; created before its child is forked.

    Parameters
    ----------
    folders : sequence of str
        Folders in which modes may be changed and files locked, including the folders themselves.
    shared : sequence of str
        Additional folders in which files may be locked.
    """

    def __init__(self, folders: Sequence[str], shared: Sequence[str] = ()) -> None:
        self._folders = tuple(map(os.path.realpath, folders))
        self._lockable = (*self._folders, *map(os.path.realpath, shared))
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1

    def begin_child(self) -> None:
        """In the child, before it closes descriptors: submit its calls and those of its descendants to the broker."""
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        listener = install_telling_filter(calls(version()))
        if listener >= 0:
            socket.send_fds(self._theirs, [b"."], [listener])

    def begin(self) -> int:
        """In the parent: return a descriptor that becomes readable when the child has begun; then call `listen`."""
        self._theirs.close()
        return self._ours.fileno()

    def listen(self) -> int:
        """Return the descriptor of notifications; call `answer` when it is readable. Negative if the kernel reports none."""
        _, found, _, _ = socket.recv_fds(self._ours, 1, 1, socket.MSG_CMSG_CLOEXEC)
        self._listener = found[0] if found else -1
        return self._listener

    def answer(self) -> None:
        """Perform or refuse one requested call."""
        notice = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notice)
        except OSError:
            return  # the process has ended in the meantime
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
                flags = _GO_ON  # its arguments are in registers, which cannot change in the meantime
        except OSError as error:
            code = error.errno or errno.EPERM
        try:
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, -code, flags))
        except OSError:
            pass  # the process has ended in the meantime

    def close(self) -> None:
        """Close the broker; later calls are refused."""
        self._ours.close()
        if self._listener >= 0:
            os.close(self._listener)


_NO_NEW_PRIVILEGES = 38
# Writable files that retain nothing.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Files that a driver writes to: the devices, shared memory of its processes (/dev/shm), and the pipes of its server for
# several processes on one device (MPS). The driver names its threads through /proc/<pid>/task/<tid>/comm, and cuInit
# fails if it cannot: CUDA_ERROR_OPERATING_SYSTEM. /dev/dxg is the device under Windows.
_GPU = ("/dev/nvidia*", "/dev/nvidia-caps*/*", "/dev/dxg", "/proc")
_GPU_FOLDERS = ("/dev/shm", os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))  # noqa: S108 - nothing is made there

_libc = ctypes.CDLL(None, use_errno=True)


def confine(setup: Setup, order: Order, calls: bytes, records: str) -> None:
    """Remove rights that a cell does not need from this process and all of its descendants.

    Restrictions that the kernel does not support are skipped; ``cumatrix doctor`` lists them.

    Parameters
    ----------
    setup, order
        The toolchain's setup and the cell's order.
    calls : bytes
        Filter from `filter_for`; empty for no filter.
    records : str
        File for records of reads (`harness.protocol.reads`); empty if reads are not followed.
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
    """Return the folders that a cell may change freely: their content is the cell's, or indistinguishable from it."""
    return [str(order.scratch), *_measured(), *(_GPU_FOLDERS if setup.device else ())]


def sandbox_restrictions() -> tuple[list[str], list[str]]:
    """Return descriptions of the supported and of the unsupported restrictions."""
    found = version()
    words = {
        "writing outside of their folder": found >= 2,
        "inspecting other processes": found >= 2,
        "truncating files": found >= 3,
        "controlling devices (ioctl)": found >= 5,
        "signals to other processes": found >= SIGNALS or broker_available(),
        "the priority and the processors of other processes": broker_available(),
        "limits of other processes, objects that outlive them, and owners of files": has_seccomp(),
        "modes and locks of files outside of their folder": broker_available(),
        "the privileges of root, except for reading other users' files": True,
    }
    return [word for word, there in words.items() if there], [word for word, there in words.items() if not there]


def _measured() -> list[str]:
    """Return the folder of coverage.py's data if it measures cumatrix's own tests."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    return [os.path.dirname(os.path.abspath(current.get_option("run:data_file")))] if current else []
