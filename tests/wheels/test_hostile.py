"""Damaged files raise one kind of error."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from harness.wheels.binary import read_library
from harness.wheels.entries import MAGIC, Broken
from harness.wheels.kernels import with_kernels

from .conftest import Tools

pytestmark = pytest.mark.compilers


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return a file with some bytes changed, cut off, doubled or swapped, mostly in headers."""
    found = bytearray(data)
    headers = [place for place in range(len(data)) if data.startswith((MAGIC, b"\x7fELF", b"!<arch>"), place)]
    for _ in range(chance.randint(1, 6)):
        near = (
            chance.choice(headers) + chance.randint(0, 100) if chance.random() < 0.8 else chance.randrange(len(found))
        )
        place = min(near, len(found) - 1)
        match chance.randrange(5):
            case 0:
                found[place] = chance.randrange(256)
            case 1:
                found[place : place + 8] = struct.pack("<Q", chance.choice([0, 1, 2**31, 2**63, 2**64 - 1, len(found)]))
            case 2:
                del found[place : place + chance.choice([1, 8, 64, 4096])]
            case 3:
                found[place:place] = found[place : place + chance.choice([1, 64, 500])]
            case _:
                found[place : place + 4] = bytes(chance.randrange(256) for _ in range(4))
        if not found:
            return b"\0"
    return bytes(found)


def survives(data: bytes, path: Path) -> bool:
    """Read a file and the names in it; return False if it raises the one kind of error."""
    path.write_bytes(data)
    try:
        library = read_library(path, path.name)
        with_kernels(library, path, library.units)
    except Broken:
        return False
    return True


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_files(tools: Tools, tmp_path: Path, count: int) -> None:
    images = [("elf", "sm_80"), ("ptx", "sm_80"), ("elf", "sm_100a")]
    files = [tools.fatbin(f"{mode}.fatbin", *images, mode=mode) for mode in ("none", "size", "speed")]
    files += [tools.folder / tools.cubin("sm_90a"), tools.objects("part.o", "-c", "-rdc=true", "-arch=sm_90")]
    subprocess.run(["ar", "rc", "lib.a", "part.o"], cwd=tools.folder, check=True)
    files.append(tools.folder / "lib.a")
    chance = random.Random(f"fatbins {count}")
    wholes = [file.read_bytes() for file in files]
    outcomes = [survives(damaged(chance.choice(wholes), chance), tmp_path / "damaged") for _ in range(count)]
    # Both outcomes occur, otherwise the mutations are useless.
    assert 0.1 * count < sum(outcomes) < 0.9 * count


def container(*entries: bytes) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def entry(kind: int = 2, size: int = 0, flags: int = 0, cc: int = 80, packed: int = 0, length: int = 0) -> bytes:
    return struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, size, packed, 0, 0, 0, cc, 0, 0, flags, 0, length) + bytes(
        size
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (MAGIC, "cut off"),
        (container(entry())[:-1], "cut off"),
        (container(entry(size=8)[:-8]), "cut off"),
        (container(entry(cc=0)), "no compute capability"),
        (container(entry(size=8, flags=0x8000, packed=9)), "9 compressed bytes in 8"),
        (container(entry(size=8, flags=0x8000, packed=8, length=100)), "cannot be decompressed"),
        (container(entry(size=8, flags=0x2000, packed=8, length=1 << 27)), "cannot be decompressed"),
        (container(entry(size=8)), "not a cubin"),
        (container(entry()) + b"some text", "no fatbin"),
        (b"!<thin>\n", "thin archive"),
        (b"!<arch>\n" + b"a" * 60, "cut off"),
        (b"\x7fELF\x02\x01" + bytes(10), "not read"),
        (b"text", "no ELF file"),
    ],
)
def test_what_is_said(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "it"
    path.write_bytes(data)
    with pytest.raises(Broken, match=words):
        with_kernels(library := read_library(path, "it"), path, library.units)


def test_what_is_too_large_is_said_to_be_unread(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(container(entry(size=8, flags=0x8000, packed=8, length=1 << 40), entry(size=8, flags=0x1000)))
    library = read_library(path, "it")
    assert with_kernels(library, path, library.units).unread == (
        "sm_80: code of 1048576 MiB is not read", "sm_80: its compression is unknown",
    )  # fmt: skip
