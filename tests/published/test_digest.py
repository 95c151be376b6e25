"""Digests of cases: changes that make answers stale, and changes that do not."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.cases.sources import digest_of
from harness.published import digests_of

CASES = Path(__file__).parents[2] / "cases"


def test_titles_and_expectations_are_no_part_of_it_and_programs_are(tmp_path: Path) -> None:
    case = tmp_path / "cases" / "wmma" / "fragments"
    shutil.copytree(CASES / "wmma" / "fragments", case)
    first = digest_of(case)
    file = case / "case.toml"
    file.write_text(file.read_text() + '\n[[expect]]\nstatus = "crashed"\n')
    assert digest_of(case) == first
    file.write_text('kernels = ["fragments"]\n' + file.read_text())
    assert digest_of(case) == first
    kernel = case / "kernel.cu"
    kernel.write_text(kernel.read_text() + "// another program\n")
    second = digest_of(case)
    assert second != first
    file.write_text(file.read_text() + '\n[[options]]\nstd = "c++20"\n')
    assert digest_of(case) != second
    (case / "__pycache__").mkdir()
    (case / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert digests_of(tmp_path / "cases") == {"wmma/fragments": digest_of(case)}


def test_there_is_one_of_each_case() -> None:
    found = digests_of(CASES)
    assert len(found) == len(list(CASES.rglob("case.toml")))
    assert digests_of(CASES / "nowhere") == {}
