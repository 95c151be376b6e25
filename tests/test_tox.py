"""``tox.ini`` as tox itself resolves it."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def commands(tmp_path: Path, names: str, *words: str) -> dict[str, list[str]]:
    """The commands of each environment, with what follows ``--``."""
    argv = [
        sys.executable,
        "-m",
        "tox",
        "config",
        "-e",
        names,
        "-k",
        "commands",
        "--workdir",
        str(tmp_path),
        "--",
        *words,
    ]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=800, check=True)
    found = configparser.ConfigParser(interpolation=None)
    found.read_string(done.stdout)
    return {
        name.removeprefix("testenv:"): found[name]["commands"].strip().splitlines()
        for name in found.sections()
        if "commands" in found[name]
    }


def test_what_follows_the_dashes_is_for_the_cases_and_not_for_the_page(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    words = ("wmma/fragments", "-a", "sm_80")
    found = commands(tmp_path, "cupy12,cupy13,report,lint", *words)
    for name in ("cupy12", "cupy13"):
        assert found[name] == [f"cumatrix run --out reports/{name}.jsonl {' '.join(words)}"]
    assert found["report"] == ["cumatrix report reports --out reports/html"]
    for name in ("report", "lint"):
        assert not any("wmma" in line or "sm_80" in line for line in found[name])


def test_the_tests_take_words_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("tox")
    assert commands(tmp_path, "tests", "-k", "wmma")["tests"] == ["pytest --durations=25 -k wmma"]
