#!/usr/bin/env python3
"""Check the output of `cumatrix diff` for two CUDA releases against their cells, without sharing code with the command.

check_diff.py [MATRIX] --releases 13.0 13.1

It compares the cells of two CUDA releases by `--across toolkit`: the count of each kind, each cell with its states before and after, and the cells
that are the same. Exits with 1 if a line is false.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from check_support import Row, rows_of

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "reports/matrix/results.parquet"


def check(text: str, old: pd.DataFrame, new: pd.DataFrame) -> Iterator[str]:
    """Yield the errors in the text of a comparison across CUDA releases."""
    before, after = ({_place(row): row for row in rows_of(table)} for table in (old, new))
    verdicts = {
        cell: verdict for table in (old, new) for cell, verdict in zip(table["cell"], table["verdict"], strict=True)
    }
    by_cell = {row.cell: row for row in (*before.values(), *after.values())}
    kinds = {kind: int(count) for count, kind in re.findall(r"^(\d+) (\w+): ", text, re.MULTILINE)}
    blocks = re.split(r"^\d+ \w+: .*\n", text, flags=re.MULTILINE)[1:]
    changed = 0
    for kind, block in zip(kinds, blocks, strict=True):
        items = re.findall(r"^  \S (.+)\n((?:      .*\n)*)", block, re.MULTILINE)
        if len(items) != kinds[kind]:
            yield f"{len(items)} cells are listed as {kind}, not {kinds[kind]}"
        for cell, details in items:
            row = by_cell[cell]
            if kind in ("appeared", "vanished"):
                if (_place(row) in before, _place(row) in after) != (kind == "vanished", kind == "appeared"):
                    yield f"{cell} has not {kind}"
                continue
            changed += 1
            earlier, later = (of.get(_place(row)) for of in (before, after))
            states = [f"{_state(each)} ({verdicts[each.cell]})" if each else "" for each in (earlier, later)]
            said = re.search(r"^      (.+) -> (.+ \(\w+\))$", details, re.MULTILINE)
            if (list(said.groups()) if said else []) != (states if states[0] != states[1] else []):
                yield f"{cell}: {' -> '.join(states)}"
    alike = re.search(r"; (\d+) cells are the same", text)
    if alike is None or int(alike[1]) != len(before.keys() & after.keys()) - changed:
        yield f"{len(before.keys() & after.keys())} cells are in both, {changed} of them changed"
    gone = Counter(vanished=len(before.keys() - after.keys()), appeared=len(after.keys() - before.keys()))
    yield from (f"{count} cells {kind}" for kind, count in gone.items() if kinds.get(kind, 0) != count)


def _place(row: Row) -> tuple[str, ...]:
    return row.case, row.variant, row.backend, row.library, row.target, row.host


def _state(row: Row) -> str:
    """Return the outcome in words: ``built``, ``rejected at compile``."""
    return row.status if row.status in ("built", "unsupported", "unavailable") else f"{row.status} at {row.stage}".replace("_", " ")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_diff.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=PUBLISHED)
    parser.add_argument("--releases", nargs=2, default=["13.0", "13.1"], metavar="V", help="two CUDA releases")
    args = parser.parse_args()
    table = pd.read_parquet(args.results)
    tables = [table[table["toolkit"] == release] for release in args.releases]
    with tempfile.TemporaryDirectory() as temporary:
        files = [Path(temporary) / f"{release}.parquet" for release in args.releases]
        # Nullable types keep integer columns with missing values as integers.
        whole = pd.read_parquet(args.results, dtype_backend="pyarrow")
        for file, release in zip(files, args.releases, strict=True):
            whole[whole["toolkit"] == release].to_parquet(file)
        command = [sys.executable, "-m", "cumatrix", "diff", "--across", "toolkit", "--limit", "0", *map(str, files)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
    if done.returncode > 1:
        raise SystemExit(f"check_diff.py: {done.stderr}")
    found = list(check(done.stdout, *tables))
    print(*found[:10], f"{len(found)} lines of a comparison are false", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
