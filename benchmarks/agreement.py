"""Compare cumatrix with directly called compilers: status, cubin and registers of every cell.

    python benchmarks/agreement.py nvcc 13.0 sm_75,sm_90 OUT.csv [-I DIR]… [--option=…]… FILE…

The script compiles each file with ``cumatrix try``, and with a few lines of Python that run nvcc or call NVRTC. It writes one line per
cell. Fetch the sources by hand. docs/agreement.md has the results.
"""

from __future__ import annotations

import csv
import ctypes
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REGISTERS = re.compile(r"Compiling entry function '(\S+)'.*?Used (\d+) registers", re.DOTALL)
LINKED = re.compile(r"Function properties for '(\S+)':\nnvlink info +: used (\d+) registers")


def nvcc(home: Path, file: str, target: str, options: list[str]) -> tuple[str, str, dict[str, int]]:
    """Compile with nvcc; return status, hash of the cubin and registers.

    With --device-only, nvcc runs only the device pass. Relocatable device code is linked, because only linking reports its registers.
    """
    options, alone = [word for word in options if word != "--device-only"], "--device-only" in options
    start = [f"{home}/bin/nvcc", f"-gencode=arch={target.replace('sm', 'compute')},code={target}"]
    argv = [*start, "-Xptxas", "-v", *options, file]
    with tempfile.TemporaryDirectory() as folder:
        how = ["-cubin", "-o", "k.cubin"] if alone else ["-c", "-o", "k.o", "--keep"]
        done = subprocess.run([*argv, *how], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            return "rejected", "", {}
        found = REGISTERS
        if "-rdc=true" in options and not alone:
            for path in Path(folder).glob("*.cubin"):
                path.unlink()
            link = [*start, "-dlink", "k.o", "-o", "l.o", "-lcudadevrt", "-Xnvlink", "-v", "--keep"]
            done = subprocess.run(link, cwd=folder, capture_output=True, text=True)
            found = LINKED
            if done.returncode:
                return "rejected", "", {}
        (cubin,) = Path(folder).glob("*.cubin")
        registers = {name: int(number) for name, number in found.findall(done.stderr + done.stdout)}
        return "built", hashlib.sha256(cubin.read_bytes()).hexdigest(), registers


def nvrtc(home: Path, file: str, target: str, options: list[str]) -> tuple[str, str, dict[str, int]]:
    for stem in ("libnvrtc-builtins.so.*", "libnvrtc.so.*"):
        (path,) = (
            path for path in Path(home, "lib64").glob(stem) if ".alt." not in path.name and not path.is_symlink()
        )
        lib = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    folders = [folder for folder in (f"{home}/include", f"{home}/include/cccl") if Path(folder).is_dir()]
    argv = [f"--gpu-architecture={target}", *options, *(f"-I{folder}" for folder in folders)]
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    lib.nvrtcCreateProgram(ctypes.byref(program), Path(file).read_bytes(), file.encode(), 0, None, None)
    if lib.nvrtcCompileProgram(program, len(argv), (ctypes.c_char_p * len(argv))(*map(str.encode, argv))):
        return "rejected", "", {}
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, cubin)
    return "built", hashlib.sha256(cubin.raw).hexdigest(), {}


BY_HAND = {"nvcc": nvcc, "nvrtc": nvrtc}


def main() -> None:
    if sys.argv[1] == "by-hand":
        backend, folder, source, target, *options = sys.argv[2:]
        print(json.dumps(BY_HAND[backend](Path(folder), source, target, options)))
        return
    backend, release, targets, out, *rest = sys.argv[1:]
    home = Path(
        subprocess.run(
            ["cumatrix", "toolkits", "path", release], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    options, files = [], []
    for word in rest:
        (options if word.startswith("-") or (options and options[-1] == "-I") else files).append(word)
    plain = [word.removeprefix("--option=") for word in options]
    counts = {"equal": 0, "different": 0, "answered otherwise": 0}
    with open(out, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "target", "cumatrix", "by hand", "cubin", "registers", "verdict", "why"])
        for source in files:
            command = [
                "cumatrix",
                "try",
                source,
                "-b",
                backend,
                "-t",
                release,
                "-a",
                targets,
                "--no-cache",
                "-j",
                "1",
                "--json",
                *options,
            ]
            said = subprocess.run(command, capture_output=True, text=True).stdout
            for record in sorted(map(json.loads, said.splitlines()), key=lambda record: record["target"]):
                # A separate process: the compiler may crash, and a process loads only one NVRTC.
                words = [backend, str(home), str(Path(source).absolute()), record["target"], *plain]
                done = subprocess.run([sys.executable, __file__, "by-hand", *words], capture_output=True, text=True)
                status, cubin, registers = json.loads(done.stdout) if done.stdout else ["crashed", "", {}]
                artifact = record["artifact"] or {"sha256": "", "kernels": []}
                found = {kernel["name"]: kernel["num_regs"] for kernel in artifact["kernels"]}
                same = {"cubin": artifact["sha256"] == cubin, "registers": not registers or found == registers}
                verdict = "equal" if record["status"] == status and all(same.values()) else "different"
                if record["status"] in ("unsupported", "unavailable"):
                    verdict = "answered otherwise"
                counts[verdict] += 1
                why = record["reason"] or (
                    record["diagnostics"][0]["message"] if record["diagnostics"] and status != "built" else ""
                )
                table.writerow(
                    [source, record["target"], record["status"], status, same["cubin"], same["registers"], verdict, why]
                )
                file.flush()
    print(counts)


if __name__ == "__main__":
    main()
