"""A library's requests to NVRTC, and NVRTC's answers (``native/nvrtc_tap.c``)."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

from harness import native
from harness.protocol.backend import Setup

_VARIABLE = "CUMATRIX_NVRTC_TAP"


@dataclass(frozen=True)
class Call:
    """One call of ``nvrtcCompileProgram``: its result code, options and log."""

    result: int
    options: tuple[str, ...]
    log: str


def install(setup: Setup) -> None:
    """Load the tap for the whole process; before NVRTC, whose function it intercepts."""
    library = native.build(setup.tools, "libcumatrix_nvrtc_tap.so", native.source("nvrtc_tap.c"))
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def listen(file: Path) -> None:
    """Keep the calls of this process in `file` from now on."""
    os.environ[_VARIABLE] = str(file)


def heard(file: Path) -> list[Call]:
    """The calls that were kept; one that the process died in is not among them."""
    calls: list[Call] = []
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return calls
    place = 0

    def line() -> bytes:
        nonlocal place
        end = data.index(b"\n", place)
        text, place = data[place:end], end + 1
        return text

    def item() -> str:
        nonlocal place
        length = int(line())
        text, place = data[place : place + length], place + length + 1
        return text.decode(errors="replace")

    while place < len(data):
        _, result, count = line().split()
        options = tuple(item() for _ in range(int(count)))
        calls.append(Call(int(result), options, item()))
    return calls
