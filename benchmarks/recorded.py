"""Compare the units of a recorded build with direct calls of nvcc: kernels and registers of each unit.

    cumatrix init --record --no-kernels -- COMMAND
    python benchmarks/recorded.py 13.0 sm_80 [MOST]

Run the script in the folder of a project. ``cumatrix run`` compiles the units, or an even choice of MOST units. Then the toolkit's nvcc
compiles them with the recorded arguments. The script prints a line per unit. docs/configuration.md has results.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.artifacts import read_cubin
from harness.toolkits.store import ToolkitStore

PLACE = Path(".cumatrix")
_WITH_VALUE = frozenset(
    (
        "-o",
        "--output-file",
        "-gencode",
        "--generate-code",
        "-arch",
        "--gpu-architecture",
        "-code",
        "--gpu-code",
        "-MF",
        "-MT",
        "-MQ",
    )
)
_ALONE = frozenset(("-c", "--compile", "-dc", "-MD", "-MMD", "-ptx", "--ptx", "-cubin", "-shared"))


def plain(name: str) -> str:
    """Remove unnamed namespaces from a mangled name: they contain a hash of the path and a process id."""
    while match := re.search(r"(\d+)_GLOBAL__N_", name):
        name = f"{name[: match.start()]}@{name[match.end(1) + int(match[1]) :]}"
    return name


def kernels_of_nvcc(home: Path, entry: dict[str, object], target: str) -> dict[str, int]:
    """Compile with the recorded arguments for a target; return names and registers of the kernels."""
    words, arguments = [], iter(list(entry["arguments"])[1:])  # type: ignore[call-overload]
    for word in arguments:
        name = word.partition("=")[0]
        if name in _WITH_VALUE:
            if "=" not in word:
                next(arguments)
        elif word not in _ALONE:
            words.append(word)
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder, "unit.cubin")
        gencode = f"-gencode=arch={target.replace('sm', 'compute')},code={target}"
        nvcc = str(home / "bin" / "nvcc")
        lines = [[nvcc, *words, "-cubin", gencode, "-o", str(cubin)]]
        if "-rdc=true" in words or "-dc" in list(entry["arguments"]):  # type: ignore[call-overload]
            # Linking determines the registers of relocatable code.
            whole = str(cubin.with_suffix(".o"))
            link = [
                nvcc,
                "-dlink",
                "--keep",
                "--keep-dir",
                folder,
                gencode,
                whole,
                "-lcudadevrt",
                "-o",
                f"{folder}/link.o",
            ]
            lines = [[nvcc, *words, "-rdc=true", "-c", gencode, "-o", whole], link]
        for argv in lines:
            done = subprocess.run(argv, cwd=str(entry["directory"]), capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"nvcc fails: {' '.join(argv)}\n{done.stderr[-2000:]}")
        (made,) = Path(folder).glob("*.cubin")
        return {plain(kernel.name): kernel.num_regs or 0 for kernel in read_cubin(made.read_bytes()).kernels}


def main(release: str, target: str, most: str = "1000") -> int:
    """Compare the units of the project in the current folder; `release` can be the path of a CUDA installation."""
    installed = ToolkitStore().find(release) if "/" not in release else None
    home = installed.home if installed else Path(release)
    entries = json.loads((PLACE / "compile_commands.json").read_text())
    numbers: Counter[str] = Counter()
    units = {}
    for entry in entries:
        name = os.path.relpath(Path(entry["directory"], entry["file"]))
        numbers[name] += 1
        units[name if numbers[name] == 1 else f"{name} ({numbers[name]})"] = entry
    step = max(1, -(-len(units) // int(most)))
    chosen = dict(list(units.items())[::step])
    out = PLACE / "compared.jsonl"
    start = time.monotonic()
    argv = [
        "cumatrix",
        "run",
        *chosen,
        "-b",
        "nvcc",
        "-t",
        release,
        "-a",
        target,
        "--trust",
        "--fresh",
        "--out",
        str(out),
    ]
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    between = time.monotonic()
    records = {record["case"]: record for record in map(json.loads, out.read_text().splitlines())}
    same = total = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda entry: kernels_of_nvcc(home, entry, target), chosen.values()))
    for name, by_hand in zip(chosen, found, strict=True):
        record = records[name]
        ours = {plain(each["name"]): each["num_regs"] for each in (record.get("artifact") or {}).get("kernels", ())}
        equal = record["status"] == "built" and ours == by_hand
        same, total = same + equal, total + len(by_hand)
        print(f"{'equal' if equal else 'DIFFERENT'}\t{len(by_hand)} kernels\t{name}", flush=True)
        if not equal:
            print(f"  {record['status']}: {sorted(ours.items() ^ by_hand.items())[:6]}")
    run, hand = between - start, time.monotonic() - between
    print(
        f"{same} of {len(chosen)} units ({len(units)} recorded), {total} kernels; cumatrix {run:.0f} s, nvcc {hand:.0f} s"
    )
    return int(same != len(chosen))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
