"""``.ci/check_diff.py``: it accepts a comparison of real cells, and finds each falsified line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from check_diff import check  # noqa: E402

CELLS = ROOT / "tests/answers/cells.parquet"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    table, folder = pd.read_parquet(CELLS), tmp_path_factory.mktemp("diff")
    old, new = (table[table["toolkit"] == release] for release in ("12.4", "13.0"))
    old.to_parquet(folder / "old.parquet")
    new.to_parquet(folder / "new.parquet")
    command = [
        sys.executable,
        "-m",
        "cumatrix",
        "diff",
        "--across",
        "toolkit",
        "--limit",
        "0",
        "old.parquet",
        "new.parquet",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, old, new


def test_a_comparison_of_real_cells_is_true(compared: tuple[str, pd.DataFrame, pd.DataFrame]) -> None:
    assert " -> " in compared[0]
    assert list(check(*compared)) == []


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        (r"; \d+ cells are the same", "; 1 cells are the same"),
        (r"      built \(pass\) -> rejected", "      rejected at link (pass) -> rejected"),
        (r"^  [<>] .*\n", ""),
        (r"^(\d+)( vanished: )", r"9\1\2"),
    ],
)
def test_what_is_made_wrong_is_found(
    pattern: str, wrong: str, compared: tuple[str, pd.DataFrame, pd.DataFrame]
) -> None:
    text, *tables = compared
    changed, count = re.subn(pattern, wrong, text, count=1, flags=re.MULTILINE)
    assert count == 1 and changed != text
    assert list(check(changed, *tables))
