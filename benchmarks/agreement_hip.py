"""Compare hipRTC and clang with HIP in cumatrix with direct calls of the same compilers, cell by cell.

``python benchmarks/agreement_hip.py gfx906,gfx90a,gfx1030 FILE… -D SYNC=1`` compares status and the SHA-256 of the code object. The
direct call of clang runs its driver with the options of Debian's packages. The direct call of hipRTC runs a process per cell that uses the
C interface. Both compilers are those in ``/usr``. The script exits with 1 if a cell differs.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from cumatrix import try_

HIPRTC = """
import ctypes, sys
file, out, *options = sys.argv[1:]
lib = ctypes.CDLL("libamdhip64.so.5")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
lib.hiprtcCreateProgram(ctypes.byref(program), open(file, "rb").read(), file.encode(), 0, None, None)
argv = (ctypes.c_char_p * len(options))(*map(str.encode, options))
if lib.hiprtcCompileProgram(program, len(options), argv):
    sys.exit(1)
lib.hiprtcGetCodeSize(program, ctypes.byref(size))
code = ctypes.create_string_buffer(size.value)
lib.hiprtcGetCode(program, code)
open(out, "wb").write(code.raw)
"""
CLANG = ("clang-15", "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-O3", "--rocm-path=/usr")
LIBRARIES = "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"


def by_hand(backend: str, file: Path, target: str, macros: list[str]) -> tuple[str, str]:
    """Compile directly; return the status and the hash of the code object."""
    options = [f"--offload-arch={target}", *(f"-D{macro}" for macro in macros)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "kernel.hsaco")
        argv = [sys.executable, "-c", HIPRTC, str(file), str(out), *options]
        if backend == "hip-clang":
            argv = [*CLANG, LIBRARIES, *options, str(file), "-o", str(out)]
        done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=600, check=False)
        if done.returncode == 0:
            return "built", hashlib.sha256(out.read_bytes()).hexdigest()
        return ("rejected" if done.returncode > 0 else f"crashed by signal {-done.returncode}"), ""


def main() -> int:
    """Compare, and print each cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-D", dest="macros", action="append", default=[])
    asked = parser.parse_args()
    define = {name: int(value) for name, _, value in (macro.partition("=") for macro in asked.macros)}
    cells = try_(
        [file.resolve() for file in asked.files], backend=("hiprtc", "hip-clang"), target=asked.targets, cache=False, define=define,
    )  # fmt: skip
    files, different = {file.name: file.resolve() for file in asked.files}, 0
    for cell in cells:
        own = (cell.status, cell.artifact["sha256"] if cell.status == "built" else "")
        hand = by_hand(cell.backend, files[cell.case.partition("@")[0].rpartition("/")[2]], cell.target, asked.macros)
        same = own == hand
        different += not same and cell.status != "unsupported"
        print(cell.case, cell.backend, cell.target, cell.status, own[1][:8], "" if same else f"by hand {hand[0]}")
    print(f"{len(cells)} cells, {different} different")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
