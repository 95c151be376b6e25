"""Fuzz for any time: ``python tests/fuzz/fuzz.py --seconds 3600 --seed tonight``.

Prints the problems and the folders of their files, and exits with 1 if there are any. Equal seeds give equal files.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzzing import KINDS, Fuzzer, problems


def main() -> int:
    """Give each kind its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--kind", choices=KINDS, action="append")
    args = parser.parse_args()
    kinds = args.kind or KINDS
    failed = False
    for kind in kinds:
        folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{kind}-"))
        fuzzer = Fuzzer(folder, f"{args.seed} {kind}")
        end, count = time.monotonic() + args.seconds / len(kinds), 0

        def going(number: int, end: float = end) -> bool:
            nonlocal count
            count = number
            return time.monotonic() < end

        found = problems(fuzzer, kind, going)
        for problem in found:
            print(problem, flush=True)
        print(f"{kind}: {count} mutations of seed {args.seed!r}, {len(found)} problems, files in {folder}", flush=True)
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
