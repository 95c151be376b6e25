"""System call numbers of each supported machine."""

from __future__ import annotations

import platform

# On x86-64, and on aarch64, whose table lacks calls with a replacement.
_NUMBERS: dict[str, tuple[int, int | None]] = {
    "add_key": (248, 217),
    "chmod": (90, None),
    "chown": (92, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fcntl": (72, 25),
    "flock": (73, 32),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioprio_set": (251, 30),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "prlimit64": (302, 261),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setpriority": (141, 140),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "tgkill": (234, 131),
    "tkill": (200, 130),
}

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``AUDIT_ARCH_X86_64`` and ``AUDIT_ARCH_AARCH64``, by the machine."""

ABSENT = -1
"""Number of a call that this machine does not have."""


def number_of(name: str, machine: str = "") -> int:
    """Return the number of a call on a machine, by default this one; `ABSENT` if it has none."""
    found = _NUMBERS[name][(machine or platform.machine()) == "aarch64"]
    return ABSENT if found is None else found


def numbers_of(*names: str) -> tuple[int, ...]:
    """Return the numbers of the calls that this machine has."""
    return tuple(each for each in map(number_of, names) if each != ABSENT)
