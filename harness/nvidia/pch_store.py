"""Precompiled headers of NVRTC that one fork server has, and how one is made (https://docs.nvidia.com/cuda/nvrtc/index.html#precompiled-headers-pch).

A precompiled header can be used where its memory lies at the same place as when it was made. All children of a fork server have
that place from it, once it has compiled anything with precompiled headers itself.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness.protocol import aside, own_folder

SILENT = "--pch-messages=false"
ONCE = "Remark: The warnings can be suppressed"
"""NVRTC appends this to the first warning of a compilation: with such a header, it would apply to the program too."""
_OF_OPTIONS = re.compile(r"(?:nvrtc: .*\n)*")
_ARCHITECTURE = re.compile(r"(?:-arch=|--gpu-architecture=)(?:sm|compute)_(\d+[af]?)")
_RELOCATABLE = {"--device-c", "-dc", "--relocatable-device-code=true"}
_MOST = 2
"""Headers that one fork server has at a time, the ones used last; each is a file of 10 to 120 MB, in memory where the temporary folder is. Cells of one header come one after another."""
_ROOM = 1 << 30  # bytes that have to be free where they are kept
# Of the builtin headers, which are texts in a library of NVRTC: what they are written in, and how long they are at least.
_TEXT = bytes(byte in b"\t\n\v\f\r" or 32 <= byte < 127 for byte in range(256))
_LEAST = 200


class Store:
    """The precompiled headers of one fork server, each with what its maker has said of it.

    Raises
    ------
    OSError
        Where there is no room for headers. NVRTC writes them through memory, and ends this process with SIGBUS where the disk is full.
    """

    def __init__(self) -> None:
        if not _has_room(tempfile.gettempdir()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
        self.folder = own_folder.make()
        self._kept: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()

    def find(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """The file of a header and its log; None without one."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def make(self, key: str, maker: Callable[[Path], dict[str, Any] | None], pulse: Callable[[], None]) -> bool:
        """Have a child make a header.

        Parameters
        ----------
        key : str
            What it is found by.
        maker : callable
            Called in the child with a new folder, where it leaves ``header.pch``; it returns the header's log, or None if the header is unusable.
        pulse : callable
            Called now and then.
        """
        while len(self._kept) >= _MOST:
            _, (gone, _) = self._kept.popitem(last=False)
            shutil.rmtree(Path(gone).parent, ignore_errors=True)
        try:
            if not _has_room(self.folder):
                return False
            folder = Path(tempfile.mkdtemp(dir=self.folder))
        except OSError:
            return False  # no room, as above
        said = aside.answer(folder, maker, pulse)
        if said is None:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        self._kept[key] = str(folder / "header.pch"), said
        return True


def for_header(options: Sequence[str]) -> list[str]:
    """The options that a precompiled header depends on: how often, where and in which spelling the architecture and relocatable code appear does not matter.

    NVRTC itself holds options against those of a header, and says so where they differ (CUDA 12.9 and 13.5 take these for the same).
    """
    others: list[str] = []
    folded: dict[str, None] = {}
    for option in options:
        if found := _ARCHITECTURE.fullmatch(option):
            folded[f"--gpu-architecture={found[1]}"] = None
        elif option in _RELOCATABLE:
            folded["--device-c"] = None
        else:
            others.append(option)
    return [*others, *sorted(folded)]


def _has_room(folder: str | Path) -> bool:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >= _ROOM


def behind(said: str, log: str) -> str:
    """NVRTC's log of a program as it is without a precompiled header: `log`, behind what was `said` of the header, but for what NVRTC says of its options in both."""
    own = _OF_OPTIONS.match(said)
    return said + log.removeprefix(own[0] if own else "")


@cache
def builtin() -> list[bytes]:
    """NVRTC's builtin headers, which a macro of a program's command line is in front of too; empty where they are not found."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[5].strip() for line in maps if "/libnvrtc" in line}
        # NVRTC loads them when it compiles first: they are in its folder.
        paths = {path.resolve() for each in loaded for path in Path(each).parent.glob("libnvrtc-builtins*")}
        return [text for path in sorted(paths) for text in _texts_in(path.read_bytes())]
    except OSError:
        return []


def _texts_in(data: bytes) -> list[bytes]:
    """Equivalent to ``re.findall(rb"[\\t\\n\\v\\f\\r -~]{200,}", data)``, ten times as fast."""
    marks, found = data.translate(_TEXT), []
    begin = marks.find(b"\1" * _LEAST)
    while begin >= 0:
        end = marks.find(b"\0", begin)
        end = len(data) if end < 0 else end
        found.append(data[begin:end])
        begin = marks.find(b"\1" * _LEAST, end)
    return found
