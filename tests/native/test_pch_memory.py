"""NVRTC's memory for precompiled headers: pieces of files come into it as if they had been mapped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import native
from harness.toolkits import Installed

ROOT = Path(__file__).parents[2]
# What NVRTC does: a range, pieces of files over it. `mapped` is the file that lies at an address, if any.
PROGRAM = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
BOTH, PRIVATE, FIXED, ANONYMOUS, RANGE, PIECE = mmap.PROT_READ | mmap.PROT_WRITE, 2, 16, 32, 256 << 20, 1 << 16

def mapped(address):
    for line in open("/proc/self/maps"):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if begin <= address < end:
            return "header" in line
    return None

file = os.open("header", os.O_RDWR | os.O_CREAT)
os.write(file, b"h" * PIECE + b"i" * 100)
size = int(os.environ.get("SIZE", RANGE))
heap = libc.mmap(None, size, BOTH, PRIVATE | ANONYMOUS, -1, 0)

def piece(at, length=PIECE, access=BOTH, kind=PRIVATE | FIXED, offset=0):
    found = libc.mmap(at, length, access, kind, file, offset)
    assert found == at, ctypes.get_errno()
    return ctypes.string_at(at, min(length, 1000))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native.build(tmp_path_factory.mktemp("tools"), "memory.so", native.source("pch_memory.c"))


@pytest.mark.parametrize("preloaded", [True, False])
@pytest.mark.parametrize(
    ("code", "is_mapped"),
    [
        ("assert piece(heap) == b'h' * 1000", False),
        ("assert piece(heap + RANGE - PIECE) == b'h' * 1000; heap += RANGE - PIECE", False),
        ("ctypes.memset(heap, 1, PIECE); piece(heap, 8192, offset=PIECE - 4096); assert ctypes.string_at(heap + 4095, 200) == b'h' + b'i' * 100 + bytes(99)", False),
        ("piece(heap); ctypes.memset(heap, 120, PIECE); assert os.pread(file, 9, 0) == b'h' * 9 and piece(heap)[:9] == b'h' * 9", False),
        ("piece(heap); os.fork() or (ctypes.memset(heap, 120, PIECE), os._exit(0)); os.wait(); assert ctypes.string_at(heap, 9) == b'h' * 9", False),
        ("heap = libc.mmap(heap, RANGE, BOTH, PRIVATE | ANONYMOUS | FIXED, -1, 0); assert piece(heap) == b'h' * 1000", False),
        # What a piece of memory would not be the same as.
        ("piece(heap, access=mmap.PROT_READ)", True),
        ("piece(heap, kind=1 | FIXED); ctypes.memset(heap, 120, 9); assert os.pread(file, 10, 0) == b'x' * 9 + b'h'", True),
        ("libc.mmap(heap, 3 * PIECE, BOTH, PRIVATE | FIXED, file, 0)", True),
        ("libc.mprotect(ctypes.c_void_p(heap), ctypes.c_size_t(PIECE), 0); assert piece(heap) == b'h' * 1000", True),
        ("libc.munmap(heap + RANGE - 4096, 4096); assert piece(heap) == b'h' * 1000", True),
        ("piece(heap + PIECE, kind=1 | FIXED); assert piece(heap) == b'h' * 1000", True),
        ("heap -= 16 * PIECE; libc.mmap(heap, 32 * PIECE, BOTH, PRIVATE | ANONYMOUS | FIXED, -1, 0); piece(heap)", True),
    ],
)  # fmt: skip
def test_a_piece_is_as_if_it_were_mapped(
    library: Path, tmp_path: Path, code: str, is_mapped: bool, preloaded: bool
) -> None:
    check = f"assert mapped(heap) is {is_mapped or not preloaded}, 'mapped'"
    _run(f"{PROGRAM}\n{code}\n{check}", tmp_path, library if preloaded else None)


def test_a_range_of_another_size_is_somebody_elses(library: Path, tmp_path: Path) -> None:
    _run(f"{PROGRAM}\npiece(heap)\nassert mapped(heap)", tmp_path, library, SIZE=str(255 << 20))


def test_a_piece_that_no_file_is_open_for(library: Path, tmp_path: Path) -> None:
    code = "os.close(file)\nassert libc.mmap(heap, PIECE, BOTH, PRIVATE | FIXED, file, 0) == 2**64 - 1 and ctypes.get_errno() == 9"
    _run(f"{PROGRAM}\n{code}", tmp_path, library)


# NVRTC by its C interface, a program compiled with a precompiled header in a child that says how many pages it asked the kernel for.
WITH_HEADER = """
import hashlib, os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from harness.nvidia.nvrtc import Nvrtc
from harness.protocol.messages import Setup
home, release = Path(sys.argv[1]), sys.argv[2]
nvrtc = Nvrtc(Setup(home=home, release=release, headers=release, include=[], tools=Path()))
text = b"#include <cooperative_groups.h>\\n"
program = text + b'extern "C" __global__ void f(int *a) { cooperative_groups::this_grid().sync(); *a = 1; }'

def compile(text, *options):
    code, log, made = nvrtc.compile(text, "f.cu", ["--gpu-architecture=sm_90", f"-I{home}/include", f"-I{home}/include/cccl", "--pch-messages=false", *options])
    assert not code and "precompiled" not in log, log
    return nvrtc.get(made, "CUBIN")

nvrtc.compile(b"", "nothing.cu", ["--pch-dir=.", "--pch"])
os.fork() or (compile(text, "--create-pch=header.pch"), os._exit(0))
assert os.wait()[1] == 0
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
cubin = compile(program, "--use-pch=header.pch")
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, hashlib.sha256(cubin).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.parametrize("release", ["12.9", "13.5"])
def test_nvrtc_compiles_the_same_with_fewer_faults(
    library: Path, tmp_path: Path, toolkit: Callable[[str], Installed], release: str
) -> None:
    home = str(toolkit(release).home)
    plain, cubin = _run(WITH_HEADER, tmp_path, None, home, release, str(ROOT)).split()
    fewer, same = _run(WITH_HEADER, tmp_path, library, home, release, str(ROOT)).split()
    assert same == cubin
    assert int(plain) > 3 * int(fewer) or not _has_huge_pages()


def _has_huge_pages() -> bool:
    try:
        return "[never]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    except OSError:
        return False


def _run(program: str, folder: Path, library: Path | None, *argv: str, **variables: str) -> str:
    load = {"LD_PRELOAD": str(library)} if library else {}
    argv = (sys.executable, "-I", "-c", program, *argv)
    done = subprocess.run(
        argv, cwd=folder, env={**os.environ, **load, **variables}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
