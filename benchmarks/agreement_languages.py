"""Compare Triton, CuTe DSL, Warp, cuTile, numba-cuda-mlir and clang in cumatrix with direct calls of the same compilers, cell by cell.

``python benchmarks/agreement_languages.py triton 3.3.0,3.5.0 sm_90,sm_103 FILE --signature 'dot=*fp16, 128'`` runs both in the same
environments (``cumatrix libraries install triton=3.3.0,3.5.0``). It compares status, stage and the SHA-256 of the artifact, and for
numba-cuda-mlir and clang also the registers. It prints a Markdown table, and exits with 1 if a cell differs. The direct call of clang uses
``clang-19`` of this machine if it is the same release, else ziglang's clang, each with a complete CUDA installation
(``cumatrix toolkits install 12.4 --with curand``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cumatrix import try_
from harness.nvidia.virtual_driver import stand_in_library
from harness.toolkits import ToolkitStore
from harness.toolkits.store import data_folder

FILES = Path(__file__).resolve().parents[1] / "harness" / "repro" / "files"
TRITON = """
import hashlib, sys
import triton_by_hand
file, kernel, signature, arch = sys.argv[1:]
target = triton_by_hand.use(int(arch) if arch.isdigit() else arch)
names = {"__name__": "__main__"}
exec(compile(open(file).read(), file, "exec"), names)
made = triton_by_hand.build(names[kernel], signature, target)
print("sha256", hashlib.sha256(b"".join(each.asm["cubin" if arch.isdigit() else "hsaco"] for each in made)).hexdigest())
"""
WARP = """
import hashlib, re, sys
import warp_by_hand
file, number, suffix = sys.argv[1], *re.fullmatch(r"sm_(\\d+)(\\w*)", sys.argv[2]).groups()
warp_by_hand.use(suffix)
exec(compile(open(file).read(), file, "exec"), globals())
print("sha256", hashlib.sha256(b"".join(warp_by_hand.build(globals(), int(number), "cubin"))).hexdigest())
"""
CUTILE = """
import hashlib, sys
import cutile_by_hand
file, target = sys.argv[1:]
made = cutile_by_hand.use(target)
exec(compile(open(file).read(), file, "exec"), globals())
print("sha256", hashlib.sha256(b"".join(made)).hexdigest())
"""
# The registers of a function: attribute 0x2f of section .nv.info. A kernel's symbol has bit 0x10 of st_other.
NUMBA = """
import ctypes, glob, hashlib, os, re, struct, sys
file, kernel, signature, arch, stand_in = sys.argv[1:]
home = os.environ["CUDA_HOME"]
for stem in ("libnvrtc-builtins", "libnvrtc", "libnvJitLink", "libcudart"):
    ctypes.CDLL(sorted(glob.glob(f"{home}/lib64/{stem}.so.*"))[0])
ctypes.CDLL(f"{home}/nvvm/lib64/libnvvm.so.4")
major, minor, suffix = re.fullmatch(r"sm_(\\d+)(\\d)(\\w?)", arch).groups()
ctypes.CDLL(stand_in).virtual_configure(13050, int(major), int(minor), None)
from numba_cuda_mlir import cuda
if suffix:
    jit = cuda.jit
    cuda.jit = lambda *args, **options: jit(*args, **options, **({} if "device" in options else {"chip": arch}))
names = {"__name__": "__main__", "JIT_OPTIONS": {}}
exec(compile(open(file).read().replace("from numba import cuda", "from numba_cuda_mlir import cuda"), file, "exec"), names)
code = names[kernel].compile(signature).cres.metadata["cubin"]
start, = struct.unpack_from("<Q", code, 40)
size, count, strings = struct.unpack_from("<HHH", code, 58)
sections = [struct.unpack_from("<IIQQQQ", code, start + size * number) for number in range(count)]
registers, symbols = [], next(section[4] for section in sections if section[1] == 2)
for name, _, _, _, place, length in sections:
    if code[sections[strings][4] + name :].startswith(b".nv.info\\0"):
        end = place + length
        while place < end:
            form, attribute, value = struct.unpack_from("<BBH", code, place)
            place += 4 + value * (form == 4)
            if attribute == 0x2F:
                symbol, used = struct.unpack_from("<II", code, place - 8)
                registers += [used] * bool(code[symbols + 24 * symbol + 5] & 0x10)
print("sha256", hashlib.sha256(code).hexdigest(), *sorted(registers))
"""


def by_hand(library: str, python: str, file: Path, target: str, signature: str, toolkit: str) -> tuple[str, str]:
    """Compile directly in a process; return status with stage, and the hash of the code."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"PATH": os.environ["PATH"], "HOME": folder, "TRITON_CACHE_DIR": folder, "PYTHONPATH": str(FILES)}
        argv = [python, str(file)]
        if library == "triton":
            kernel, _, text = signature.partition("=")
            argv = [python, "-c", TRITON, str(file), kernel, text, re.sub(r"sm_(\d+)a?", r"\1", target)]
        elif library == "warp":
            argv = [python, "-c", WARP, str(file), target]
        elif library == "cutile":
            argv = [python, "-c", CUTILE, str(file), target.rstrip("a")]
        elif library == "numba-cuda-mlir":
            kernel, _, text = signature.partition("=")
            environ["CUDA_HOME"] = toolkit
            stand_in = stand_in_library(data_folder() / "tools")
            argv = [python, "-c", NUMBA, str(file), kernel, text, target, str(stand_in)]
        else:
            environ |= {"CUTE_DSL_ARCH": target, "CUTE_DSL_DUMP_DIR": folder, "CUTE_DSL_NO_CACHE": "1"}
            environ |= {"CUTE_DSL_KEEP": "cubin", "CUTE_DSL_KEEP_CUBIN": "1"}
        done = subprocess.run(argv, env=environ, cwd=file.parent, capture_output=True, text=True, timeout=600)
        codes = [path.read_bytes() for path in sorted(Path(folder).glob("*.cubin"))]
    if library == "cute-dsl" and codes:  # releases up to 4.5 then fail without a driver
        return "built", hashlib.sha256(b"".join(codes)).hexdigest()
    if done.returncode == 0:
        return "built", done.stdout.rpartition("sha256 ")[2].strip()
    if done.returncode < 0:
        return f"crashed by signal {-done.returncode}", ""
    last = done.stderr.splitlines()[-1]
    if library == "numba-cuda-mlir" and "nvJitLinkError" in done.stderr and "Entry function" not in last:
        return "rejected at link", ""
    return ("rejected at assemble" if "ptxas" in last or "PTXASError" in done.stderr else "rejected at compile"), ""


def clang_by_hand(python: str, version: str, file: Path, target: str, cuda: Path) -> tuple[str, str]:
    """Compile with clang's driver; return status with stage, and the hash of the cubin with the registers of its first kernel."""
    name = f"clang-{version.split('.')[0]}"
    found = shutil.which(name)
    said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout if found else ""
    if f"version {version}" in said:
        clang = [name]
    else:
        site = Path(python).parents[1].glob("lib/python3*/site-packages")
        headers = next(path.parents[1] for each in site for path in each.glob("*/**/__clang_cuda_runtime_wrapper.h"))
        clang = [python, "-m", "ziglang", "clang", "--target=x86_64-unknown-linux-gnu", "-resource-dir", str(headers)]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "kernel.cubin")
        options = [
            f"--cuda-path={cuda}",
            f"--cuda-gpu-arch={target}",
            "--cuda-device-only",
            "-O3",
            "-Xcuda-ptxas",
            "-v",
        ]
        argv = [*clang, "-x", "cuda", *options, "-c", file.name, "-o", str(out)]
        done = subprocess.run(
            argv, cwd=file.parent, env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, timeout=600
        )
        words = done.stdout + done.stderr
        if done.returncode:
            return (
                "rejected at assemble" if "ptxas fatal" in words or "ptxas command" in words else "rejected at compile"
            ), ""
        registers = re.search(r"Used (\d+) registers", words)
        return "built", f"{hashlib.sha256(out.read_bytes()).hexdigest()} {registers[1] if registers else ''}"


def main() -> int:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=("triton", "cute-dsl", "warp", "cutile", "numba-cuda-mlir", "clang"))
    parser.add_argument("versions")
    parser.add_argument("targets")
    parser.add_argument("file", type=Path)
    parser.add_argument("--signature", default="")
    parser.add_argument("--toolkit", default="", help="for a library without CUDA tools of its own")
    asked = parser.parse_args()
    file = asked.file.resolve()
    kernel, _, text = asked.signature.partition("=")
    cells = try_(
        file, backend=asked.library, with_={asked.library: asked.versions}, target=asked.targets, cache=False,
        **({"signature": {kernel: text}} if text else {}), **({"toolkit": asked.toolkit} if asked.toolkit else {}),
    )  # fmt: skip
    home = ToolkitStore().find(asked.toolkit) if asked.toolkit else None
    different, rows = 0, dict[str, list[str]]()
    for cell in cells:
        version = f"{cell.library} | {cell.toolkit}" if asked.toolkit else cell.library
        if cell.status == "unsupported":
            rows.setdefault(version, []).append(f"{cell.target}: not applicable")
            continue
        python = subprocess.run(
            [Path(sys.executable).with_name("cumatrix"), "libraries", "path", f"{asked.library}={cell.library}"],
            capture_output=True, text=True, check=True,
        ).stdout.split()[-1]  # fmt: skip
        own = cell.status
        own += f" at {cell.stage}" if own == "rejected" else f" by signal {cell.signal}" if own == "crashed" else ""
        code = cell.artifact["sha256"] if cell.status == "built" else ""
        used = sorted(each.registers for each in cell.kernels) if asked.library == "numba-cuda-mlir" else []
        if asked.library == "clang":
            code += f" {cell.kernels[0].registers}" if code else ""
            hand = clang_by_hand(python, cell.library, file, cell.target, ToolkitStore().root / cell.toolkit)
        else:
            hand = by_hand(asked.library, python, file, cell.target, asked.signature, str(home.home) if home else "")
        found = (own, " ".join([code, *map(str, used)]))
        same = found == hand
        different += not same
        shown = f"{own}, `{code[:8]}`" + "".join(f", {each}" for each in used[-1:]) if code else own
        rows.setdefault(version, []).append(
            f"{cell.target}: {shown}" if same else f"{cell.target}: {found}; by hand {hand}"
        )
    for version, found in rows.items():
        print(f"| {version} | {' | '.join(found)} |")
    print(f"{len(cells)} cells, {different} different")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
