#!/usr/bin/env python3
"""Compare the published matrix with the cases, and with a sample that is compiled again.

check_matrix.py [MATRIX] --cells 200 --toolchains 10 --seed NIGHT

Exits with 1 if a case has changed or an outcome differs, and with 3 if no matrix is published.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from harness.answers.cells import own_of
from harness.backends import library_of
from harness.published import published_folder, read_manifest, stale_cases
from harness.records import Record, at_stage, read_records, weight
from harness.records.merge import agreement_key
from harness.records.parquet import read_parquet

_TARGETS = 2


@dataclass(frozen=True, kw_only=True)
class ToolchainSample:
    """Sampled cells of a toolchain, with the axes that compile them again.

    Parameters
    ----------
    backend, library, toolkit : str
        The toolchain.
    cases, targets : tuple of str
        The cases and targets to compile, in every variant.
    cells : tuple of Record
        Their published records.
    """

    backend: str
    library: str
    toolkit: str
    cases: tuple[str, ...]
    targets: tuple[str, ...]
    cells: tuple[Record, ...]

    @property
    def words(self) -> list[str]:
        """Return the arguments of the command ``cumatrix run`` that compiles the cells."""
        tool = ["--with", f"{library_of(self.backend)}={self.library}"] if self.library else []
        return ["run", *self.cases, "-b", self.backend, *tool, "-t", self.toolkit, "-a", ",".join(self.targets), "--no-cache"]  # fmt: skip


def sample_of(
    records: Iterable[Record],
    count: int,
    *,
    parts: int,
    seed: str,
    seconds: float = 2.0,
    backends: Collection[str] = (),
    toolkits: Collection[str] = (),
) -> list[ToolchainSample]:
    """Choose a random sample of cells.

    Parameters
    ----------
    records : iterable of Record
        The published records.
    count : int
        Minimum number of cells, if there are enough.
    parts : int
        Number of toolchains.
    seed : str
        Seed of the choice.
    seconds : float
        Slower cells are omitted. So are cells of header libraries and of requested host compilers, which require an installation.
    backends, toolkits : collection of str
        Backends and toolkits to choose from; all by default.
    """
    random = Random(seed)
    chains: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if _fit(record, seconds) and (not backends or record["backend"] in backends) and (not toolkits or record["toolkit"] in toolkits):  # fmt: skip
            chains.setdefault((record["backend"], record["library"], record["toolkit"]), []).append(record)
    chosen = random.sample(sorted(chains), min(parts, len(chains)))
    found: list[ToolchainSample] = []
    # Toolchains with many cells take the unused shares of those with few.
    for place, chain in enumerate(sorted(chosen, key=lambda chain: (len(chains[chain]), chain))):
        left = count - sum(len(part.cells) for part in found)
        found.append(_part(chain, chains[chain], -(-left // (len(chosen) - place)), random))
    return found


def _fit(record: Record, seconds: float) -> bool:
    return (
        weight(record) == 2
        and record["status"] != "timed_out"
        and record["seconds"] <= seconds
        and "+" not in record["toolkit"]
        and not record["toolchain"]["requested"].get("libraries")
        and not record.get("host_compiler")
    )


def _part(chain: tuple[str, str, str], records: Sequence[Record], count: int, random: Random) -> ToolchainSample:
    names = sorted({record["target"] for record in records})
    targets = random.sample(names, min(_TARGETS, len(names)))
    by_case: dict[str, list[Record]] = {}
    for record in records:
        if record["target"] in targets:
            by_case.setdefault(record["case"], []).append(record)
    cells: list[Record] = []
    cases = []
    for case in random.sample(sorted(by_case), len(by_case)):
        # Limit the variants of a case: otherwise a case with many variants can fill the sample.
        if len(cells) < count and len(by_case[case]) <= max(4, count // 2):
            cases.append(case)
            cells += by_case[case]
    backend, library, toolkit = chain
    return ToolchainSample(backend=backend, library=library, toolkit=toolkit, cases=tuple(cases), targets=tuple(targets), cells=tuple(cells))  # fmt: skip


def contradictions(published: Iterable[Record], fresh: Mapping[str, Record]) -> list[str]:
    """Return a sentence for each published cell with a different outcome or none.

    A timeout of a slow machine is no contradiction, and neither is an outcome with another host compiler of the machine.
    """
    found = []
    for record in published:
        now = fresh.get(record["cell"])
        if now is None:
            found.append(f"{record['cell']}: published, and not compiled again")
        elif (
            now["status"] != "timed_out" and _host(now) == _host(record) and agreement_key(now) != agreement_key(record)
        ):
            found.append(f"{record['cell']}: published as {_told(record)}; now {_told(now)}")
    return found


def _host(record: Record) -> str:
    """Return the machine's host compiler with its major version, ``gcc 12``; empty if the cell used none."""
    return own_of(record["backend"], "", record["toolchain"]).partition(".")[0]


def _told(record: Record) -> str:
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"]
    return ": ".join(filter(None, (at_stage(record["status"], record["stage"]), first)))


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
    print(f"{count} cells of {len(parts)} toolchains compiled again: {len(found)} contradict the matrix; {len(stale)} cases are stale")  # fmt: skip
    return 1 if found or stale else 0


def compiled(part: ToolchainSample) -> dict[str, Record]:
    """Compile the sampled cells again; return the records by cell."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "fresh.jsonl")
        subprocess.run(["cumatrix", *part.words, "--out", str(out)], stdout=subprocess.DEVNULL, check=False)
        found = read_records([out]).records if out.is_file() else ()
    return {record["cell"]: record for record in found}


if __name__ == "__main__":
    sys.exit(main())
