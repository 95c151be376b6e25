"""The matrix in reports/matrix: from this version of the cases, and not contradicted by cells that are compiled again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from check_matrix import contradictions, sample_of
from command import Command

from harness.answers.store import read_packed
from harness.published import Manifest, published_folder, read_manifest, stale_cases
from harness.records import Record, read_records
from harness.records.parquet import read_parquet

ROOT = Path(__file__).parents[2]
LARGEST = 10_000_000
"""Size limit of the matrix in bytes: the repository stays small."""


@pytest.fixture(scope="module")
def folder() -> Path:
    found = published_folder()
    assert found == ROOT / "reports" / "matrix"
    return found


@pytest.fixture(scope="module")
def manifest(folder: Path) -> Manifest:
    return read_manifest(folder)


@pytest.fixture(scope="module")
def records(folder: Path) -> list[Record]:
    return read_parquet(folder / "results.parquet")[0]


def test_it_was_made_by_this_version_of_the_cases(manifest: Manifest) -> None:
    stale = stale_cases(manifest.cases)
    assert not stale, (
        f"the published answers of {', '.join(stale)} are of another program: compile these cases again, and "
        "cumatrix publish reports/matrix NEW.jsonl --out reports/matrix; without NEW.jsonl they are left out"
    )


def test_its_files_tell_the_same_and_it_is_small(folder: Path, manifest: Manifest, records: list[Record]) -> None:
    packed = read_packed(folder / "answers.json.gz")
    assert (len(records), packed.answered) == (manifest.cells, manifest.answered)
    assert {row.cell for row in packed.rows_of(packed.features)} == {record["cell"] for record in records}
    assert {record["case"] for record in records} == set(manifest.cases)
    assert {record["run"] for record in records} == {run["run"] for run in manifest.value["runs"]}
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    said = (folder / "README.md").read_text("utf-8")
    assert f"{manifest.answered:,} of them answered" in said
    # The published commands contain nothing of a machine.
    assert not any(word.startswith(("/", "--out=/")) for run in manifest.value["runs"] for word in run["command"].split())  # fmt: skip


@pytest.mark.compilers
def test_cells_compiled_now_do_not_contradict_it(
    cumatrix: Command, toolkit: Callable[[str], object], records: list[Record], tmp_path: Path
) -> None:
    """A few cells; the nightly run compiles 200 cells of ten toolchains."""
    parts = sample_of(records, 8, parts=1, seed="suite", seconds=0.5, backends=["nvrtc"], toolkits=["12.4", "12.9", "13.0"])  # fmt: skip
    assert sum(len(part.cells) for part in parts) >= 8
    for part in parts:
        toolkit(part.toolkit)
        out = tmp_path / f"{part.toolkit}.jsonl"
        cumatrix(*part.words, "--cases", ROOT / "cases", "--out", out)
        fresh = {record["cell"]: record for record in read_records([out]).records}
        assert contradictions(part.cells, fresh) == []
