"""Compare outcomes and processor time of cells with and without precompiled headers. The arguments are those of `cumatrix run`.

    python benchmarks/precompiled.py -t 12.9 -a sm_75,sm_90,sm_120 -b nvrtc --with cupy=13

Each side is a whole run with an empty cache. All keys of the records must be equal, except the run, seconds and memory: status, artifact,
log, command, and the fingerprint, which depends on every file that was read. The script prints the cells that differ, and compiles them
again without precompiled headers, because the outcome of some programs varies. It exits with 1 if a difference remains.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.cli import main as cumatrix
from harness.engine import executor

_OF_THE_RUN = {"run", "seconds", "peak_bytes"}
_OF_THE_MOMENT = re.compile(r"tmp\w{8}|cumatrix-run-\w{8}|cell-\w{8}")


def side(name: str, folder: Path, arguments: list[str]) -> dict[str, dict[str, Any]]:
    """Run a side; return its records by cell. The output of the run goes to stderr."""
    out = folder / f"{name}.jsonl"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, __file__, f"--side={name}", "run", "--out", str(out), *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(folder / name), "CUMATRIX_CACHE": "", "CUMATRIX_ENVIRONMENT": "benchmark"},
        stdout=sys.stderr, check=False,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    records = {each["cell"]: each for each in found if "cell" in each}
    seconds = sum(each["seconds"] for each in records.values())
    print(f"{name}: {len(records)} cells, {seconds:.0f} s in cells, {used:.0f} s of processor time", flush=True)
    return records


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the keys whose values differ between two records."""
    return [
        key for key in one
        if key not in _OF_THE_RUN and _OF_THE_MOMENT.sub("", json.dumps(one[key])) != _OF_THE_MOMENT.sub("", json.dumps(other.get(key)))
    ]  # fmt: skip


def main() -> None:
    """Run both sides in separate processes, and compare them."""
    arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, ours = side("without", folder, arguments), side("with", folder, arguments)
        differ = {cell: keys for cell in plain if (keys := differences(plain[cell], ours.get(cell, {})))}
        again = side("again", folder, arguments) if differ else {}
    left = 0
    for cell, keys in differ.items():
        always = [key for key in keys if key not in differences(plain[cell], again[cell])]
        left += bool(always)
        print(cell, "differs" if always else "differs from time to time", ", ".join(always or keys), sep=": ")
        for key in always:
            print(f"  without: {json.dumps(plain[cell][key])}\n  with:    {json.dumps(ours[cell][key])}")
    if left or not plain or ours.keys() != plain.keys():
        sys.exit(f"{left} cells are not the same")
    print(f"{len(plain)} cells are the same")


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("--side="):
        chosen = sys.argv.pop(1).partition("=")[2]
        if chosen != "with":
            executor._Queue.alike = lambda *_: -1  # type: ignore[method-assign]  # nothing is to be made
        sys.argv[0] = "cumatrix"
        cumatrix()
    else:
        main()
