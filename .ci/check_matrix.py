#!/usr/bin/env python3
"""Holds the published matrix against the cases, and against a sample that is compiled anew.

check_matrix.py [MATRIX] --cells 200 --toolchains 10 --seed NIGHT

Exits with 1 where a case is another program now, and where an answer came out differently; with 3 where nothing is published.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.published import ToolchainSample, contradictions, published_folder, read_manifest, sample_of, stale_cases
from harness.records import Record, read_records
from harness.records.parquet import read_parquet


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_matrix.py", description=__doc__.splitlines()[0])
    parser.add_argument(
        "matrix", type=Path, nargs="?", help="folder of the matrix; that of this checkout when left out"
    )
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--toolchains", type=int, default=10)
    parser.add_argument("--seed", default="0")
    args = parser.parse_args()
    matrix = args.matrix or published_folder()
    if matrix is None:
        print("check_matrix.py: no matrix is published here", file=sys.stderr)
        return 3
    stale = stale_cases(read_manifest(matrix).cases)
    for case in stale:
        print(f"{case}: another program now; its answers are old")
    records, _ = read_parquet(matrix / "results.parquet")
    parts = sample_of((record for record in records if record["case"] not in stale), args.cells, parts=args.toolchains, seed=args.seed)  # fmt: skip
    count, found = 0, []
    for part in parts:
        fresh = compiled(part)
        count += len(part.cells)
        found += contradictions(part.cells, fresh)
    for sentence in found:
        print(sentence)
    print(f"{count} cells of {len(parts)} toolchains compiled anew: {len(found)} contradict the matrix; {len(stale)} cases are stale")  # fmt: skip
    return 1 if found or stale else 0


def compiled(part: ToolchainSample) -> dict[str, Record]:
    """The same cells, compiled now."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "fresh.jsonl")
        subprocess.run(["cumatrix", *part.words, "--out", str(out)], stdout=subprocess.DEVNULL, check=False)
        found = read_records([out]).records if out.is_file() else ()
    return {record["cell"]: record for record in found}


if __name__ == "__main__":
    sys.exit(main())
