"""The records of a real device in the repository are readable, and agree with docs/gpu.md."""

from __future__ import annotations

import tarfile
from collections import Counter
from pathlib import Path

import pytest

from harness.analysis.cell_sets import rejudger
from harness.records import Results, read_records
from harness.records.merge import virtual_against_real

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "reports" / "h200-2026-11-21" / "records.tar.gz"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("h200")
    with tarfile.open(KEPT) as archive:
        # The keyword "filter" exists only since Python 3.11.4.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return read_records([folder])


def test_every_one_can_be_read(kept: Results) -> None:
    assert not kept.warnings
    assert (len(kept.records), len(kept.plans)) == (1033, 10)


def test_virtual_and_real_agree(kept: Results) -> None:
    honesty = virtual_against_real(kept.records)
    assert len(honesty.pairs) == 335
    assert not honesty.differences
    shown = Counter(pair.virtual["case"] for pair in honesty.shown_by_device)
    assert shown == {"exceptions/trap": 7, "shared-memory/no-opt-in": 7, "exceptions/numba-raise": 6}


def test_judged_again_all_is_as_expected_but_what_was_not_there(kept: Results) -> None:
    rejudge = rejudger(ROOT / "cases")
    verdicts = Counter(rejudge(record)["verdict"] for record in kept.records if record["backend"] != "cupy-jitify")
    assert verdicts.keys() == {"pass", "unsupported", "unresolved"}
    assert verdicts["unresolved"] == 4  # numba-cuda with NumPy 2.5


def test_every_feature_got_to_a_checked_result(kept: Results) -> None:
    checked = {
        (record["topic"], record["backend"])
        for record in kept.records
        if record["device"].get("virtual") is False and (record["status"], record["stage"]) == ("built", "verify")
    }
    topics = ("cooperative", "exceptions", "shared-memory", "wmma")
    assert {
        (topic, backend) for topic in topics for backend in ("nvrtc", "nvcc", "cupy-nvrtc", "torch-nvcc")
    } <= checked
    assert {(topic, backend) for topic in topics[:3] for backend in ("numba", "numba-cuda")} <= checked


def test_a_report_of_the_folder_does_not_take_them_for_the_users(tmp_path: Path) -> None:
    assert not list(KEPT.parent.glob("*.jsonl"))
    assert not list(KEPT.parent.glob("*.parquet"))
    assert KEPT.stat().st_size < 5_000_000
