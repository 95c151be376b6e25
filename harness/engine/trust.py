"""Timestamps of files, and whether a changed content always shows in them."""

from __future__ import annotations

import ctypes
import os
import struct
import time

from harness.engine.reads import Signature

# Magic numbers of file systems whose time of change moves with every write (statfs(2)): ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, overlayfs,
# NFS, Lustre, GPFS and Ceph. A FUSE, CIFS, 9P or FAT file system makes no such promise.
_POSIX = frozenset(
    (0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0xCA451A4E, 0x2FC12FC1, 0x794C7630, 0x6969, 0x0BD00BD3, 0x47504653, 0x00C36400)
)  # fmt: skip
# tmpfs and ramfs: a page that a program has mapped stays writable without a trace.
_IN_MEMORY = frozenset((0x01021994, 0x858458F6))
_READ_ONLY = 1  # ST_RDONLY: another image may have the same inodes and times
# Bytes. Compilers and libraries that are this large are replaced, and not written to through a mapping.
_LARGE = 4 << 20
# The kernel writes a mapped page back within 35 s (vm.dirty_expire_centisecs, dirty_writeback_centisecs), and until then a further write to it
# shows in no timestamp (ns).
_MAPPED = 60_000_000_000
# The clock of a file system may stand still for 10 ms (ns).
_FRESH = 20_000_000
_MEMORY = 2.0  # seconds

_libc = ctypes.CDLL(None, use_errno=True)


class Timestamps:
    """Tells whether the signature of a file stands for its content; what it knows of a file system is at most two seconds old."""

    def __init__(self) -> None:
        self._devices: dict[int, tuple[float, int, bool]] = {}

    def hold(self, path: str, signature: Signature) -> bool:
        """Whether a file with this signature has the content that it has now for as long as the signature stays the same."""
        small = signature[2] <= _LARGE
        if time.time_ns() - signature[4] < (_MAPPED if small else _FRESH):
            return False
        kind, read_only = self._file_system(path, signature[0])
        return not read_only and (kind in _POSIX or (kind in _IN_MEMORY and not small))

    def _file_system(self, path: str, device: int) -> tuple[int, bool]:
        now = time.monotonic()
        known = self._devices.get(device)
        if not known or now - known[0] >= _MEMORY:
            known = self._devices[device] = (now, *_statfs(path))
        return known[1], known[2]


def _statfs(path: str) -> tuple[int, bool]:
    """Magic number of a path's file system, and whether it is mounted read-only; ``(0, True)`` where that cannot be asked."""
    room = ctypes.create_string_buffer(256)
    if _libc.statfs(os.fsencode(path), room):
        return 0, True
    words = struct.unpack_from("@11l", room)
    return words[0] & 0xFFFFFFFF, bool(words[10] & _READ_ONLY)
