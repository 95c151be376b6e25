"""A filter of system calls (https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html) for what Landlock does not cover."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence

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

_libc = ctypes.CDLL(None, use_errno=True)


def available() -> bool:
    """Return whether the kernel accepts such a filter, and cumatrix has one for this machine."""
    action = ctypes.c_uint32(_ERROR)
    return bool(_MACHINE) and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


def tells() -> bool:
    """Return whether the kernel can have another process decide on a call."""
    action = ctypes.c_uint32(_TELL)
    return available() and _libc.syscall(_SECCOMP, _ACTION_AVAILABLE, 0, ctypes.byref(action)) == 0


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


def install(program: bytes) -> bool:
    """Filter the calls of this process and of all that it starts; it must have given up gaining privileges."""
    return _install(program, _SPEC_ALLOW) == 0


def install_telling(calls: Mapping[int, Sequence[int]]) -> int:
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
