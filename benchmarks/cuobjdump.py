"""Compare `cumatrix wheel` with NVIDIA's cuobjdump, entry by entry, on the libraries of wheels.

    uv pip install --target tools --no-deps nvidia-cuda-cuobjdump
    python benchmarks/cuobjdump.py --cuobjdump tools/nvidia/cu13/bin/cuobjdump NAME[==VERSION]… [--json FILE]

The script downloads each wheel, unpacks each library, reads it with both tools, and removes it. It compares the lists of SASS and PTX with
their targets, in the order of ``cuobjdump --all-fatbin --list-elf --list-ptx``. cuobjdump omits the f of family-specific SASS and ignores
fatbins outside of ``.nv_fatbin`` and ``__nv_relfatbin``; the script compares neither.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from harness.environments.index import Index
from harness.errors import CumatrixError
from harness.wheels.binary import HEAD, is_binary, read_library
from harness.wheels.entries import Kind, Library
from harness.wheels.fetch import choose, fetched, requirement_of

_LINE = re.compile(r"(ELF|PTX) file +\d+: .*?\.?(sm_\d+[af]?)\.(?:cubin|ptx)$")
_KINDS = {Kind.SASS: "ELF", Kind.PTX: "PTX"}


def ours(library: Library) -> list[tuple[str, str]]:
    """Return the entries with cuobjdump's names, in its order: linked code first."""
    listed = []
    for unit in sorted((unit for unit in library.units if unit.section in (".nv_fatbin", "__nv_relfatbin", "")), key=lambda unit: (unit.member, unit.section != ".nv_fatbin") if not unit.member else ("", 0)):  # fmt: skip
        for entry in unit.entries:
            if entry.kind in _KINDS:
                suffix = "" if entry.kind is Kind.SASS and entry.target.suffix == "f" else entry.target.suffix
                listed.append((_KINDS[entry.kind], f"sm_{entry.target.cc}{suffix}"))
    return listed


def theirs(tool: Path, library: Path) -> tuple[list[tuple[str, str]], str, float, int]:
    """Run cuobjdump; return its list, its error, its seconds, and its memory in MiB."""
    before = time.perf_counter()
    argv = [
        "/usr/bin/env",
        "python3",
        "-c",
        _MEASURE,
        str(tool),
        "--all-fatbin",
        "--list-elf",
        "--list-ptx",
        str(library),
    ]
    done = subprocess.run(argv, capture_output=True, text=True)
    seconds = time.perf_counter() - before
    listed = [(match[1], match[2]) for line in done.stdout.splitlines() if (match := _LINE.match(line.strip()))]
    error = " ".join(line for line in done.stderr.splitlines() if "fatal" in line or "error" in line)
    memory = re.search(r"MEASURED (\d+) ([\d.]+)", done.stderr)
    assert memory
    return listed, error, float(memory[2]) or seconds, int(memory[1])


_MEASURE = """
import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:])
seconds = time.perf_counter() - begin
print("MEASURED", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, round(seconds, 3), file=sys.stderr)
"""
_READ = """
import sys
from pathlib import Path
from harness.wheels.binary import read_library
read_library(Path(sys.argv[1]), sys.argv[1])
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak) // 1024)
"""


def compare(tool: Path, path: Path, name: str) -> dict[str, Any] | None:
    """Compare a library; return None if it has no device code in the sections that cuobjdump reads."""
    library = read_library(path, name)
    listed = ours(library)
    if not listed:
        return None
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True)
    own_seconds = time.perf_counter() - begin
    other, error, seconds, memory = theirs(tool, path)
    return {
        "library": name, "bytes": library.size, "entries": len(listed), "further": sum(len(unit.entries) for unit in library.further),
        "equal": listed == other, "same_set": Counter(listed) == Counter(other), "error": error.replace(str(path), name),
        "seconds": round(own_seconds, 2), "memory": int(done.stdout), "cuobjdump_seconds": round(seconds, 2), "cuobjdump_memory": memory,
    }  # fmt: skip


def wheel(tool: Path, path: Path) -> list[dict[str, Any]]:
    """Compare every library of a wheel."""
    found = []
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        for member in archive.infolist():
            with archive.open(member) as opened:
                if not is_binary(member.filename, opened.read(HEAD)) or member.filename.endswith((".ptx", ".o")):
                    continue
            place = Path(archive.extract(member, folder))
            if row := compare(tool, place, member.filename):
                found.append(row)
            place.unlink()
    return found


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print a line per wheel, and the sum."""
    by_wheel: dict[str, list[dict[str, Any]]] = {}
    for row in {(row["wheel"], row["library"]): row for row in rows}.values():
        by_wheel.setdefault("-".join(row["wheel"].split("-")[:2]).replace("_", "-"), []).append(row)
    print("| wheel | libraries | entries | equal | seconds | MiB | cuobjdump: seconds | MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, of_wheel in [*sorted(by_wheel.items()), ("all", [row for each in by_wheel.values() for row in each])]:
        refused = sum(bool(row["error"]) for row in of_wheel)
        equal = f"{sum(row['equal'] for row in of_wheel)}" + (f" ({refused} refused)" if refused else "")
        print(
            f"| {name} | {len(of_wheel)} | {sum(row['entries'] for row in of_wheel):,} | {equal} "
            f"| {sum(row['seconds'] for row in of_wheel):.1f} | {max(row['memory'] for row in of_wheel)} "
            f"| {sum(row['cuobjdump_seconds'] for row in of_wheel):.1f} | {max(row['cuobjdump_memory'] for row in of_wheel):,} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuobjdump", type=Path, default=Path("cuobjdump"))
    parser.add_argument("--json", type=Path, help="append a line a library")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="print the table of a file that --json wrote, and compare nothing"
    )
    parser.add_argument("wheels", nargs="*", metavar="NAME[==VERSION]|FILE")
    options = parser.parse_args()
    if options.table:
        print_table([json.loads(line) for line in options.table.read_text("utf-8").splitlines()])
        return 0
    unequal = 0
    with tempfile.TemporaryDirectory() as folder:
        index = Index(Path(folder))
        for text in options.wheels:
            try:
                if Path(text).is_file():
                    rows, of = wheel(options.cuobjdump, Path(text)), Path(text).name
                else:
                    requirement = requirement_of(text)
                    assert requirement, text
                    with fetched(choose(requirement, index), lambda _: None) as path:
                        rows, of = wheel(options.cuobjdump, path), path.name
            except CumatrixError as error:
                print(f"{text}: {error}", file=sys.stderr)
                continue
            for row in rows:
                unequal += not (row["equal"] or row["error"])
                print(json.dumps({"wheel": of, **row}), flush=True)
                if options.json:
                    with options.json.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({"wheel": of, **row}) + "\n")
            print(
                f"{of}: {len(rows)} libraries, {sum(row['equal'] for row in rows)} equal", file=sys.stderr, flush=True
            )
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB", file=sys.stderr)
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
