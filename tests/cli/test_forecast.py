"""``run --dry-run``, ``run --shard`` and ``cumatrix cache``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import write_case
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

KERNEL = 'extern "C" __global__ void k(float *a) { a[0] = N; }'
TABLE = "[parameters]\nN = [1, 2, 3]\n"


@pytest.fixture
def place(cumatrix: Command, toolkit: Callable[[str], Installed]) -> Path:
    toolkit("12.4")
    tmp_path = cumatrix.folder
    write_case(tmp_path / "cases", "t/one", KERNEL, TABLE)
    return tmp_path


@pytest.fixture
def run(place: Path, cumatrix: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("CUMATRIX_CACHE", str(place / "cache"))

    def go(*argv: str) -> tuple[int, str, str]:
        done = cumatrix(*argv)
        return done.returncode, done.stdout, done.stderr

    return go


ARGV = ("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80,sm_90", "-j", "2")


@pytest.mark.slow
def test_a_dry_run_compiles_nothing_and_foretells_what_happens(
    run: Callable[..., tuple[int, str, str]], place: Path
) -> None:
    code, out, _ = run(*ARGV, "--dry-run", "--json")
    found = json.loads(out)
    assert (code, found["cells"], found["compile"], found["cached"], found["known"]) == (0, 6, 6, 0, 0)
    assert not (place / "reports").exists()
    assert run("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80")[0] == 0
    found = json.loads(run(*ARGV, "--dry-run", "--json")[1])
    assert (found["cached"], found["compile"], found["known"], found["backends"]) == (3, 3, 3, {"nvrtc": 3})
    assert 0 < found["seconds"] <= found["processor_seconds"]
    code, out, _ = run(*ARGV, "--dry-run")
    assert code == 0
    assert "to compile                3 (nvrtc 3)" in out


def test_a_dry_run_says_what_is_not_there(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("run", "-b", "cupy-nvrtc", "-t", "12.4", "-a", "sm_80", "--dry-run")
    assert code == 4
    assert "3 cells: " in out


@pytest.mark.slow
def test_the_parts_together_are_the_whole(run: Callable[..., tuple[int, str, str]], place: Path) -> None:
    cells = []
    for number in (1, 2):
        assert run(*ARGV, "--shard", f"{number}/2", "--out", f"parts/{number}.jsonl")[0] == 0
        cells.append({json.loads(line)["cell"] for line in (place / f"parts/{number}.jsonl").read_text().splitlines()})
    assert len(cells[0]) == len(cells[1]) == 3 and not cells[0] & cells[1]
    assert run("merge", "parts", "--out", "all.jsonl")[0] == 0
    code, _, words = run("merge", "parts/1.jsonl", "--out", "half.jsonl")
    assert code == 1
    assert "part 2 of 2 of the run in" in words
    code, _, words = run(*ARGV, "--costs", "parts")
    assert code == 2 and "--costs is for --shard" in words


@pytest.mark.slow
def test_the_cache_tells_of_itself_and_forgets(run: Callable[..., tuple[int, str, str]], place: Path) -> None:
    assert run(*ARGV)[0] == 0
    before = json.loads(run("cache", "info", "--json")[1])
    assert before["folder"] == str(place / "cache" / "results")
    assert before["entries"] > 6 and 0 < before["bytes"] < before["limit_bytes"]
    assert "entries" in run("cache", "info")[1]
    code, out, _ = run("cache", "prune")
    assert code == 0 and f"{before['entries']} outcome" in out
    assert json.loads(run("cache", "info", "--json")[1])["entries"] == 0
    records = [json.loads(line) for line in run(*ARGV, "--json")[1].splitlines()]
    assert len(records) == 6 and not any(record["cached"] for record in records)
    code, out, _ = run("cache", "prune", "--to", "1G")
    assert code == 0 and out.startswith("0 outcomes forgotten")
