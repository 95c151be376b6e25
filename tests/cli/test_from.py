"""``--from``: results of others answer if nothing has changed, and not otherwise."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import lasting
from command import Command

from harness.toolkits import Installed
from harness.toolkits.store import data_folder

pytestmark = pytest.mark.compilers

WHAT = ("try", "kernel.cu", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80,sm_90", "-I", "include")


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], Command]:
    """A folder of a user with the program and an empty cache."""

    def folder(name: str) -> Command:
        here = tmp_path / name
        (here / "include").mkdir(parents=True)
        (here / "include" / "n.h").write_text("#define N 3\n")
        (here / "kernel.cu").write_text(
            "#include <n.h>\n#include <cuda_fp16.h>\n__global__ void k(int *a) { *a = N; }\n"
        )
        return Command(here)

    return folder


def answers(
    command: Command, *words: str | Path, env: dict[str, str] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Run in a folder with a cache of its own; return the records and the output."""
    done = command(*words, "--json", env={"CUMATRIX_CACHE": str(command.folder / "cache"), **(env or {})})
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def told(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without the location of the program."""
    return sorted(({**lasting(record), "program": ""} for record in records), key=lambda record: record["cell"])


@pytest.mark.slow
def test_others_results_answer_until_something_changes(
    folder: Callable[[str], Command], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    theirs = folder("theirs")
    first, _ = answers(theirs, *WHAT, "--out", "results.jsonl")
    assert theirs("report", "results.jsonl", "--out", "page").returncode == 0
    for place in ("results.jsonl", "page"):
        mine = folder(f"of-{place}")
        found, said = answers(mine, *WHAT, "--from", theirs.folder / place)
        assert [record["cached"] for record in found] == [True, True]
        assert {record["taken_from"] for record in found} == {f"{theirs.folder / place}, run {first[0]['run']}"}
        assert f"taken from {theirs.folder / place}, run {first[0]['run']}: 2 of 2 cells" in " ".join(said.split())
        assert told(found) == told(first)

    results = theirs.folder / "results.jsonl"
    mine = folder("mine")

    def changed(why: str, *more: str, env: dict[str, str] | None = None) -> None:
        shutil.rmtree(mine.folder / "cache", ignore_errors=True)
        found, said = answers(mine, *WHAT, *more, "--from", results, env=env)
        assert [record["cached"] for record in found] == [False, False], why
        assert "taken from" not in said
        assert why in " ".join(said.split())

    changed("the request there differs", "--limit", "stack=64M")
    (mine.folder / "include" / "n.h").write_text("#define N 4\n")
    changed("include/n.h differs from the file there")
    (mine.folder / "include" / "n.h").write_text("#define N 3\n")
    home = tmp_path / "home"
    shutil.copytree(data_folder() / "toolkits" / "12.4", home / "toolkits" / "12.4", symlinks=True)
    with (home / "toolkits" / "12.4" / "include" / "cuda_fp16.h").open("a") as header:
        header.write("// mine\n")
    changed("12.4/include/cuda_fp16.h differs from the file there", env={"CUMATRIX_HOME": str(home)})
    with (mine.folder / "kernel.cu").open("a") as program:
        program.write("// mine\n")
    changed("kernel.cu differs from the file there")
