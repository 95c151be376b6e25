"""The capabilities of root (capabilities(7)) that a cell keeps: one, to read what other users own."""

from __future__ import annotations

import ctypes
import struct

_KEPT = 1 << 1
"""CAP_DAC_OVERRIDE: root compiles files that another user owns.

CAP_DAC_READ_SEARCH allows reading as well, but also opens files by their handle, past every folder (open_by_handle_at(2)).
"""
_VERSION = 0x20080522
_CAPBSET_READ, _CAPBSET_DROP = 23, 24
_libc = ctypes.CDLL(None, use_errno=True)


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
