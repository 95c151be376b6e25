"""What root may do with the machine itself (capabilities(7)), and the program of a cell has no business with."""

from __future__ import annotations

import ctypes
import struct

# From linux/capability.h. Those by which files are read and written stay, so that what root can compile is compiled.
_MACHINE = {
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_RAWIO": 17,
    "CAP_SYS_PACCT": 20,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_BOOT": 22,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
    "CAP_SYS_TIME": 25,
    "CAP_SYS_TTY_CONFIG": 26,
    "CAP_LEASE": 28,
    "CAP_SYSLOG": 34,
    "CAP_WAKE_ALARM": 35,
    "CAP_BPF": 39,
}
_VERSION = 0x20080522
_libc = ctypes.CDLL(None, use_errno=True)


def give_up() -> bool:
    """Give them up, for good where this process may gain no privileges; False where the kernel does not say what there are.

    Programs that root starts would have them again, but for ``PR_SET_NO_NEW_PRIVS``.
    """
    header = struct.pack("=Ii", _VERSION, 0)
    sets = ctypes.create_string_buffer(24)
    if _libc.capget(header, sets):
        return False
    words = list(struct.unpack("=6I", sets.raw))
    for number in _MACHINE.values():
        place, bit = number // 32 * 3, ~(1 << number % 32)
        words[place : place + 3] = [word & bit for word in words[place : place + 3]]
    return bool(_libc.capset(header, struct.pack("=6I", *words)) == 0)
