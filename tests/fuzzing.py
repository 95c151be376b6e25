"""Fuzzed files, and the commands that read them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import mutations
from fuzzing_inputs import INPUTS, InputFuzzer
from fuzzing_projects import PROJECTS, ProjectFuzzer
from in_process import Called, Hang, call
from record_builders import cell, plan, record, rejected

from harness.analysis.history import append
from harness.model import Outcome, Stage, Status

KINDS = ("records", "plan", "exported", "history", *INPUTS, *PROJECTS)
"""Names of the fuzzed kinds."""


@cache
def good() -> tuple[list[Any], dict[str, Any]]:
    """Write records of several kinds and their plan; the record of one cell is missing."""
    cells = [cell(variant={"arch": "given", "N": 4}, target=target) for target in ("sm_75", "sm_80", "sm_90")]
    cells += [cell("wmma/two", backend="nvrtc", library="", toolkit="13.0", headers="12.9", target="compute_90a")]
    cells += [cell("jit/kernel", backend="numba", library="0.59.1", target="sm_80")]
    crashed = Outcome(
        status=Status.CRASHED,
        stage=Stage.LINK,
        stages=(Stage.COMPILE, Stage.LINK),
        signal=11,
        seconds=1.5,
        log="x\n",
        reason="died",
    )
    unsupported = Outcome(status=Status.UNSUPPORTED, reason="no such architecture")
    records: list[Any] = [
        record(one, outcome) for one, outcome in zip(cells, (None, rejected(), crashed, unsupported), strict=False)
    ]
    for each in records[0]["artifact"]["kernels"]:
        each |= {"instructions": 40, "opcodes": 12}
    records[1]["others"] = [
        {"run": "run-0", "status": "built", "stage": "assemble", "reason": "", "diagnostic": "", "device": "virtual"}
    ]
    records[2]["device"] = {
        "virtual": False,
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "driver": 580,
        "cuda": "13.0",
    }
    records[3] |= {"program": "3fa9c1" * 10, "peak_bytes": 1 << 20}
    return records, plan(*cells)


def write(folder: Path, *, records: bytes | None = None, planned: bytes | None = None) -> Path:
    """Write a folder of records; parts that are not given are valid."""
    folder.mkdir(parents=True, exist_ok=True)
    lines, whole = good()
    (folder / "r.jsonl").write_bytes(
        b"".join(json.dumps(line).encode() + b"\n" for line in lines) if records is None else records
    )
    (folder / "r.plan.json").write_bytes(json.dumps(whole).encode() if planned is None else planned)
    return folder


class Fuzzer:
    """Fuzzer that mutates files of one kind, and calls every command that reads them.

    Parameters
    ----------
    folder : Path
        Folder for the files; the next mutation removes the files of the last.
    seed : str
        Seed of the mutations; equal seeds give equal files.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.inputs = InputFuzzer(folder, seed)
        self.good = write(folder / "good")
        self.projects = ProjectFuzzer(self.good, seed)
        self.exported = folder / "site" / "results.parquet"
        assert call("report", self.good, "--out", folder / "site", "--cases", folder / "none").code == 0
        self.runs = folder / "runs"
        records, planned = good()
        for name in ("run-1", "run-2"):
            told: list[Any] = [{**each, "run": name} for each in records]
            append(self.runs, told, [{**planned, "run": name}])

    def round(self, kind: str) -> Iterator[Called]:
        """Mutate one file of a kind and call the commands."""
        bad = self.folder / "bad"
        shutil.rmtree(bad, ignore_errors=True)
        bad.mkdir()
        if kind in PROJECTS:
            yield from self.projects.round(kind, bad)
        else:
            yield from self.inputs.round(kind, bad) if kind in INPUTS else getattr(self, f"_{kind}")(bad)

    def _records(self, bad: Path) -> Iterator[Called]:
        yield from self._all(write(bad / "in", records=mutations.json_lines(good()[0], self.random)), bad)

    def _plan(self, bad: Path) -> Iterator[Called]:
        yield from self._all(write(bad / "in", planned=mutations.json_file(good()[1], self.random)), bad)

    def _exported(self, bad: Path) -> Iterator[Called]:
        file = bad / "x.parquet"
        file.write_bytes(mutations.parquet(self.exported.read_bytes(), self.random))
        yield call("diff", file, self.good, "--cases", bad / "none")
        yield call("diff", self.good, file, "--cases", bad / "none", "--where", 'target == "sm_80"', "--json")
        yield call("report", file, "--out", bad / "out", "--cases", bad / "none")

    def _history(self, bad: Path) -> Iterator[Called]:
        runs = shutil.copytree(self.runs, bad / "runs")
        file = self.random.choice(sorted(runs.rglob("*.parquet")))
        file.write_bytes(mutations.parquet(file.read_bytes(), self.random))
        yield from self._of_history(runs, bad)
        yield call("diff", "--history", runs, "previous", "latest", "--cases", bad / "none")
        yield call("report", self.good, "--history", runs, "--out", bad / "out", "--cases", bad / "none")
        yield call("history", "add", self.good, "--history", runs)

    def _all(self, source: Path, bad: Path) -> Iterator[Called]:
        yield call("merge", source, "--out", bad / "merged.jsonl")
        yield call(
            "merge", source, "--out", bad / "some.jsonl", "--where", 'N == 4 and toolkit >= "12.0" and message != "x"'
        )
        for argv in (["explain", ""], ["explain", "--where", 'status != "built"'], ["explain", "", "--json"]):
            yield call(*argv, "--results", source)
        yield call("explain", "sm_80", "--results", source)
        yield call("diff", source, self.good, "--cases", bad / "none")
        yield call("diff", self.good, source, "--across", "library", "--cases", bad / "none", "--json")
        runs = bad / "runs"
        yield call("history", "add", source, "--history", runs)
        if runs.is_dir():
            yield from self._of_history(runs, bad)
        yield call("report", source, "--out", bad / "out", "--cases", bad / "none")

    def _of_history(self, runs: Path, bad: Path) -> Iterator[Called]:
        yield call("history", "list", "--history", runs)
        yield call("history", "list", "--history", runs, "--json", "--where", 'cc >= "8.0"')
        yield call("history", "cell", "sm_80", "--history", runs)
        yield call("history", "broken", "--history", runs)


def problems(fuzzer: Fuzzer, kind: str, going: Callable[[int], bool]) -> list[str]:
    """Fuzz while `going`; return the problems, and keep the files of the first of each kind in folders of their own."""
    found: dict[str, str] = {}
    number = 0
    while going(number):
        wrongs = []
        try:
            wrongs += [(called.argv, called.problem()) for called in fuzzer.round(kind)]
        except Hang:
            wrongs.append((("...",), f"{kind}: does not end"))
        for argv, wrong in wrongs:
            key = wrong.strip().rpartition("\n")[2][:60]
            if wrong and key not in found:
                found[key] = f"{kind}, mutation {number}: cumatrix {' '.join(argv)}: {wrong}"
                keep = fuzzer.folder / f"found-{kind}-{number}"
                subprocess.run(["cp", "-a", fuzzer.folder / "bad", keep], check=True)
        number += 1
    return list(found.values())
