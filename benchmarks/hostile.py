"""Measure a run with hostile cells: the outcomes of the other cells, leftovers, and the memory of the scheduler.

The script generates programs and runs ``cumatrix run`` twice: with hostile texts (``tests/hostile/texts.py``) and hostile Python programs
(``tests/hostile/programs.py``), and without. All other outcomes must be equal. See README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from hostile.programs import ENTRIES, KERNEL, PROGRAMS, intruders, text_of  # noqa: E402
from hostile.texts import TEXTS  # noqa: E402

from harness.toolkits.store import data_folder  # noqa: E402

_VARIANTS = 20
_PASSING = ("seconds", "cached", "run", "peak_bytes", "shared_steps")
_INNOCENT = """
__global__ void scale(float *a, int n) {
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x % 64] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n) a[i] = s[(threadIdx.x + PLACE) % 64] * (CASE + PLACE);
}
"""
# The compiler rejects every tenth innocent case with a message of its own.
_REFUSED = "__global__ void refused(int *a) { *a = missing_CASE + PLACE; }\n".replace("missing_CASE", "missing")


def main() -> int:
    options = _arguments()
    if same := TEXTS.keys() & PROGRAMS.keys():
        sys.exit(f"hostile.py: a text and a program have one name: {', '.join(same)}")
    names = options.only.split(",") if options.only else sorted([*TEXTS, *(PROGRAMS if options.python else ())])
    with tempfile.TemporaryDirectory(prefix="hostile-load-") as folder:
        root = Path(folder)
        hostile = _write(root / "cases", options, names)
        runs = {}
        for name in ("with", "without"):
            runs[name] = measure(root, name, root / "cases", options)
            print(f"{name} hostile cells: {_told(runs[name], hostile)}", flush=True)
            for each in hostile:
                shutil.rmtree(root / "cases" / each, ignore_errors=True)
    problems = list(compare(runs["with"], runs["without"], hostile))
    for problem in problems:
        print(f"problem: {problem}")
    print(
        f"{'FAILED' if problems else 'fine'}: {len(hostile)} hostile cells of {len(names)} kinds among {len(runs['without']['records'])} others"
    )
    if options.json:
        value = {name: {key: run[key] for key in ("seconds", "memory", "left", "code")} for name, run in runs.items()}
        Path(options.json).write_text(
            json.dumps({**value, "statuses": _statuses(runs["with"], hostile), "problems": problems}, indent=1) + "\n"
        )
    return 1 if problems else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, default=2000, help="how many in all (default: 2000)")
    parser.add_argument("--share", type=float, default=0.05, help="share of hostile ones (default: 0.05)")
    parser.add_argument("-b", "--backend", default="nvrtc", help="nvrtc or nvcc (default: nvrtc)")
    parser.add_argument(
        "-t",
        "--toolkit",
        default="12.9",
        help="CUDA release, as `cumatrix run` takes it: 12.9, local, … (default: 12.9)",
    )
    parser.add_argument(
        "-a", "--target", default="sm_80", help="sm_80, or compute_80, for which the PTX is read (default: sm_80)"
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count() or 1, help="cells at the same time (default: all cores)"
    )
    parser.add_argument("--timeout", type=int, default=20, help="seconds that a cell may take (default: 20)")
    parser.add_argument("--memory", default="4G", help="memory that a process may take (default: 4G)")
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter that has Numba: hostile programs in Python come in as well, and one innocent case in four goes through Numba",
    )
    parser.add_argument("--only", help="hostile texts and programs by name, with commas; default: all")
    parser.add_argument("--seed", default="0", help="of the order of cells (default: 0)")
    parser.add_argument("--json", metavar="FILE", help="write what was measured to FILE")
    return parser.parse_args()


def _write(root: Path, options: argparse.Namespace, names: list[str]) -> set[str]:
    """Write innocent and hostile cases in random order; return the names of the hostile cases."""
    bad = round(options.cells * options.share)
    good = -(-(options.cells - bad) // _VARIANTS)
    kinds = [names[number % len(names)] for number in range(bad)] + [""] * good
    random.Random(options.seed).shuffle(kinds)
    hostile, words = set(), _words(root.parent)
    table = f"[parameters]\nplace = {list(range(_VARIANTS))}\n"
    for number, kind in enumerate(kinds):
        name = f"load/c{number:05}"
        if kind in PROGRAMS:
            _case(root / name, kind, text_of(PROGRAMS[kind], words).encode(), "", "python")
        elif kind:
            text = TEXTS[kind]
            _case(root / name, kind, text if isinstance(text, bytes) else text.encode(), "")
        elif options.python and number % 4 == 1:
            _case(root / name, "innocent", KERNEL.format(number).encode(), table, "python")
        else:
            source = (_REFUSED if number % 10 == 0 else _INNOCENT).replace("CASE", str(number))
            _case(root / name, "innocent", source.encode(), table)
        if kind:
            hostile.add(name)
    return hostile


def _words(root: Path) -> dict[str, str]:
    """Return the values that hostile programs receive."""
    return {
        "cache": os.environ.get("CUMATRIX_CACHE") or str(Path.home() / ".cache" / "cumatrix"),
        "data": str(data_folder()),
        "mark": str(root / "tmp"),
        "here": str(root),
    }


def _case(folder: Path, title: str, source: bytes, table: str, language: str = "cuda") -> None:
    folder.mkdir(parents=True)
    file = "kernel.py" if language == "python" else "kernel.cu"
    (folder / file).write_bytes(source)
    entries = ", ".join(f'{name} = "{types}"' for name, types in ENTRIES.items())
    entry = f"[entry]\npython = {{ {entries} }}\n" if language == "python" else ""
    (folder / "case.toml").write_text(f'title = "{title}"\n[source]\n{language} = "{file}"\n{entry}{table}', "utf-8")


def measure(root: Path, name: str, cases: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the cases; return records, time, leftovers and the scheduler's memory."""
    # Both runs use the same folder: host compilers read it, and the fingerprint covers the files that they read.
    temporary, out = root / "tmp", root / f"{name}.jsonl"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    argv = [sys.executable, "-c", "from harness.cli.main import main; main()", "run", "--cases", str(cases), "--no-cache", "--device", "none",
            "-b", options.backend + (",numba" if options.python else ""), *(["--python", options.python] if options.python else []), "-t", options.toolkit, "-a", options.target, "-j", str(options.jobs), "--timeout", str(options.timeout),
            "--memory", options.memory, "--out", str(out)]  # fmt: skip
    env = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    began = time.monotonic()
    memory: list[tuple[int, int]] = []
    with open(root / f"{name}.log", "wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=root)
        watch = threading.Thread(target=_watch, args=(process, out, memory))
        watch.start()
        code = process.wait()
        watch.join()
    if code not in (0, 1):
        sys.exit(
            f"hostile.py: the run ended with {code}: {(root / f'{name}.log').read_text('utf-8', 'replace')[-3000:]}"
        )
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    left = [str(path) for path in temporary.iterdir()] + [f"process {pid}" for pid in _processes(str(temporary))]
    left += intruders([root, Path(data_folder()), ROOT / "harness"])
    return {
        "records": {r["cell"]: r for r in records},
        "count": len(records),
        "seconds": time.monotonic() - began,
        "memory": memory,
        "left": left,
        "code": code,
    }


def _watch(process: subprocess.Popen[bytes], out: Path, memory: list[tuple[int, int]]) -> None:
    """Record the number of finished cells and the scheduler's memory in KiB, each second."""
    while process.poll() is None:
        try:
            count = out.read_bytes().count(b"\n") if out.exists() else 0
            status = Path(f"/proc/{process.pid}/status").read_text()
            memory.append((count, int(status.partition("VmRSS:")[2].split()[0])))
        except (OSError, IndexError):
            return
        time.sleep(1)


def _processes(mark: str) -> Iterator[int]:
    """Yield the processes whose variables or command line contain a folder."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for file in ("environ", "cmdline"):
            try:
                if mark.encode() in Path("/proc", pid, file).read_bytes() and int(pid) != os.getpid():
                    yield int(pid)
                    break
            except OSError:
                break


def compare(mixed: Mapping[str, Any], alone: Mapping[str, Any], hostile: set[str]) -> Iterator[str]:
    """Yield the problems: leftovers, missing records, and different outcomes of innocent cells."""
    for name, run in (("with", mixed), ("without", alone)):
        yield from (f"left by the run {name}: {item}" for item in run["left"])
        if run["count"] != len(run["records"]):
            yield f"the run {name} wrote {run['count']} records of {len(run['records'])} cells"
    others = {cell: record for cell, record in mixed["records"].items() if record["case"] not in hostile}
    if others.keys() != alone["records"].keys():
        yield f"{len(others.keys() ^ alone['records'].keys())} cells are in one run only"
    for cell, record in alone["records"].items():
        if cell in others and _lasting(others[cell]) != _lasting(record):
            keys = [key for key in record if key not in _PASSING and others[cell].get(key) != record[key]]
            yield f"{cell} differs in {', '.join(keys)}: {others[cell]['status']} {others[cell]['reason'][:200]}"
    statuses = {record["status"] for record in alone["records"].values()}
    if statuses - {"built", "rejected"}:
        yield f"of those that are not hostile some are {', '.join(sorted(statuses - {'built', 'rejected'}))}"
    found = {record["case"] for record in mixed["records"].values()} & hostile
    if found != hostile:
        yield f"{len(hostile - found)} hostile cells have no record"
    for record in mixed["records"].values():
        if record["case"] in hostile and record["status"] not in ("built", "rejected", "crashed", "timed_out"):
            yield f"{record['cell']} is {record['status']}: {record['reason'][:200]}"


def _lasting(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in _PASSING}


def _statuses(run: Mapping[str, Any], hostile: set[str]) -> dict[str, int]:
    return dict(Counter(record["status"] for record in run["records"].values() if record["case"] in hostile))


def _told(run: Mapping[str, Any], hostile: set[str]) -> str:
    memory, count = run["memory"], run["count"]
    marks = []
    for part in (0.1, 0.25, 0.5, 0.75, 1):
        near = min(memory, key=lambda pair: abs(pair[0] - part * count), default=(0, 0))
        marks.append(f"{near[1] >> 10} MiB after {near[0]}")
    statuses = _statuses(run, hostile)
    words = f" ({', '.join(f'{n} {status}' for status, n in sorted(statuses.items()))} hostile)" if statuses else ""
    return f"{count} cells{words} in {run['seconds']:.0f} s; the scheduler's memory: {', '.join(marks)}; left: {len(run['left'])}"


if __name__ == "__main__":
    sys.exit(main())
