"""``cumatrix diff`` and ``cumatrix history``, on records of real compilers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.toolkits import Installed

from .test_errors import sentence

pytestmark = pytest.mark.called

GOOD = "__global__ void k(int *a) { a[threadIdx.x] = 1; }\n"
BAD = "__global__ void k(int *a) { a[threadIdx.x] = missing; }\n"
BIG = "__global__ void k(int *a, int n) { int s[64]; for (int i = 0; i < 64; ++i) s[i] = a[i * n]; for (int i = 0; i < 64; ++i) a[s[i] & 63] += s[(i + n) & 63]; }\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, toolkit: Callable[[str], Installed]) -> Path:
    """Write nights of a program that worked, then used more registers, and then broke."""
    folder = tmp_path_factory.mktemp("diff")
    toolkit("12.9")
    script = Path(sys.executable).with_name("cumatrix")
    for name, source, targets in (
        ("good", GOOD, "sm_80,sm_90"),
        ("big", BIG, "sm_80,sm_90"),
        ("bad", BAD, "sm_80,sm_100"),
    ):
        (folder / "k.cu").write_text(source)
        axes = ["-b", "nvrtc", "-t", "12.9", "-a", targets, "--out", f"{name}.jsonl"]
        subprocess.run([script, "try", "k.cu", *axes], cwd=folder, check=False, capture_output=True, timeout=800)
    return folder


@pytest.fixture
def run(cumatrix: Command, made: Path) -> Command:
    """``cumatrix diff`` on record files."""
    return type(cumatrix)(made)


def test_a_regression_exits_with_1(run: Command) -> None:
    done = run("diff", "good.jsonl", "bad.jsonl")
    assert (done.returncode, done.stderr) == (1, "")
    assert "1 regression: is not as expected" in done.stdout
    assert "  ! k.cu nvrtc cuda12.9 sm_80\n      built (pass) -> rejected at compile (fail)\n" in done.stdout
    assert 'identifier "missing" is undefined' in done.stdout
    assert "  > k.cu nvrtc cuda12.9 sm_100" in done.stdout
    assert "  < k.cu nvrtc cuda12.9 sm_90" in done.stdout
    assert done.stdout.endswith(
        "1 regression, 1 appeared, 1 vanished; 0 cells are the same\n2 cells of NEW are not as expected: 2 new, 0 as before\n"
    )


def test_a_fix_does_not(run: Command) -> None:
    done = run("diff", "bad.jsonl", "good.jsonl", "--only", "fix")
    assert done.returncode == 0
    assert done.stdout.startswith("1 fix: ")
    assert "appeared:" not in done.stdout


def test_the_same_and_other_resources(run: Command) -> None:
    assert run("diff", "good.jsonl", "good.jsonl").stdout == "nothing changed; 2 cells are the same\n"
    done = run("diff", "good.jsonl", "big.jsonl")
    assert done.returncode == 0
    assert "2 resources: built both times" in done.stdout


def test_nothing_changed_is_not_all_is_well(run: Command) -> None:
    done = run("diff", "bad.jsonl", "bad.jsonl")
    assert done.returncode == 0
    assert done.stdout == (
        "nothing changed; 2 cells are the same\n2 cells of NEW are not as expected: 0 new, 2 as before\n"
    )
    bad = json.loads(run("diff", "bad.jsonl", "bad.jsonl", "--json").stdout)["unexpected"]
    assert [(item["cell"], item["before"], item["new"]) for item in bad] == [
        (f"k.cu nvrtc cuda12.9 {target}", "rejected at compile", False) for target in ("sm_80", "sm_100")
    ]
    assert bad[0]["page"] == "matrix.html#cell=k.cu;;nvrtc;;12.9;sm_80"


def test_json(run: Command) -> None:
    done = run("diff", "good.jsonl", "bad.jsonl", "--json")
    assert done.returncode == 1
    value = json.loads(done.stdout)
    assert (value["schema"], value["counts"], value["same"]) == (1, {"regression": 1, "appeared": 1, "vanished": 1}, 0)
    assert value["changes"][0]["new"]["outcome"] == "rejected at compile"


def test_parquet_and_folders_hold_the_same(run: Command, made: Path) -> None:
    assert run("report", "good.jsonl", "--out", "page").returncode == 0
    assert run("diff", "page/results.parquet", "good.jsonl").stdout == "nothing changed; 2 cells are the same\n"
    (made / "folder").mkdir(exist_ok=True)
    for suffix in (".jsonl", ".plan.json"):
        shutil.copy(made / f"good{suffix}", made / "folder")
    assert run("diff", "folder", "page/results.parquet").returncode == 0


@pytest.mark.slow
def test_history(run: Command) -> None:
    for name in ("good", "big", "bad"):
        done = run("history", "add", f"{name}.jsonl", "--commit", f"commit-of-{name}")
        assert (done.returncode, done.stdout) == (0, "")
    rows = json.loads(run("history", "list", "--json").stdout)
    assert [(row["built"], row["bad"], row["cells"]) for row in rows] == [(2, 0, 2), (2, 0, 2), (0, 2, 2)]
    assert "commit-of-good" in run("history", "list").stdout
    done = run("diff", "--history", "history", "previous", "latest")
    assert (done.returncode, "1 regression" in done.stdout) == (1, True)
    assert run("diff", f"history/run={rows[0]['run']}", "good.jsonl").returncode == 0
    broken = run("history", "broken").stdout
    assert f"good in {rows[1]['run']}, bad since {rows[2]['run']}" in broken
    told = run("history", "cell", "cuda12.9 sm_80").stdout
    assert "-> " in told.splitlines()[3]
    events = json.loads(run("history", "cell", "cuda12.9 sm_80", "--json").stdout)["events"]
    assert [event["outcome"] for event in events] == ["built", "built", "rejected at compile"]
    sentence(run("history", "cell", "cuda12.9"), 2, "3 cells have 'cuda12.9' in their ids, say more, as with --where")
    sentence(run("diff", "--history", "history", "latest", "zzz"), 2, "no run of the history called 'zzz'")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["diff", "good.jsonl"], 2, ["NEW"]),
        (["diff", "good.jsonl", "nowhere"], 2, ["nowhere: no such file or folder"]),
        (["diff", "good.jsonl", "nowhere.parquet"], 2, ["nowhere.parquet: no such file or folder"]),
        (["diff", "good.jsonl", "k.cu"], 2, ["k.cu: line 1: not JSON"]),
        (["diff", "good.jsonl", "broken.parquet"], 2, ["broken.parquet: cannot be read as Parquet"]),
        (["diff", "good.jsonl", "good.jsonl", "--only", "fixes"], 2, ["'fixes' is not one of regression, fix"]),
        (["diff", "good.jsonl", "empty.jsonl"], 3, ["there are no cells in empty.jsonl"]),
        (["diff", "--history", "nohistory", "latest", "previous"], 2, ["nohistory: there is no history"]),
        (["history", "list", "--history", "nohistory"], 2, ["there is no history"]),
        (["history", "add", "nowhere.jsonl"], 2, ["nowhere.jsonl"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_errors(run: Command, made: Path, arguments: list[str], code: int, words: list[str]) -> None:
    (made / "broken.parquet").write_bytes(b"PAR1")
    (made / "empty.jsonl").write_bytes(b"")
    (made / "empty.plan.json").write_text(
        json.dumps(
            {
                "schema": 1,
                "run": "r",
                "environment": "",
                "started": "2026-01-01",
                "machine": {},
                "argv": [],
                "cells": [],
            }
        )
    )
    sentence(run(*arguments), code, *words)


def test_foreign_parquet(run: Command, made: Path) -> None:
    import pandas as pd

    pd.DataFrame({"a": [1]}).to_parquet(made / "foreign.parquet")
    sentence(run("diff", "foreign.parquet", "good.jsonl"), 2, "this is not a file of cumatrix's results")
