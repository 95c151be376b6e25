"""``.ci/check_replies.py``: it accepts replies of real cells, and finds wrong numbers."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from harness.answers.store import Store, read_known

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

from check_replies import Counts, check  # noqa: E402

CELLS = ROOT / "tests/answers/cells.parquet"


@pytest.fixture(scope="module")
def counts() -> Counts:
    return Counts(pd.read_parquet(CELLS).astype(object).where(lambda frame: frame.notna(), None))


@pytest.fixture(scope="module")
def replies() -> dict[str, str]:
    made = Store.of(read_known([CELLS])).replies
    found = {key: made.of(key) for key in made.known_keys()}
    return {key: reply.sentence for key, reply in found.items() if reply}


def names(counts: Counts) -> dict[str, list[str]]:
    from harness.model.gpus import ARCHITECTURES

    return {name: list(targets) for name, targets in ARCHITECTURES.items()}


def test_replies_of_real_cells_are_true(counts: Counts, replies: dict[str, str]) -> None:
    kinds = {key.split(" ")[0] for key in replies}
    assert kinds == {
        *("breaks", "release", "drop", "requires", "first", "last", "code", "host", "hosts"),
        *("capability", "tensor", "limits", "minimum", "supported", "driver", "with", "vendor", "ptx"),
    }
    assert list(check(replies, counts, names(counts))) == []


@pytest.mark.parametrize("intent", ["breaks", "release", "drop", "requires", "with"])
def test_another_number_is_false(intent: str, counts: Counts, replies: dict[str, str]) -> None:
    changed = {}
    for key, sentence in replies.items():
        found = re.search(r"(?<![\d.,])(\d+)(?= (?:cases?|of|programs|cells|pairs))", sentence)
        if key.startswith(f"{intent} ") and found:
            changed[key] = f"{sentence[: found.start()]}{int(found[1]) + 1}{sentence[found.end() :]}"
    assert changed
    assert {key for key, _ in check(changed, counts, names(counts))} == set(changed)


def test_another_release_is_false(counts: Counts, replies: dict[str, str]) -> None:
    key, sentence = next((key, sentence) for key, sentence in replies.items() if key.startswith("first ") and "is the first release" in sentence)  # fmt: skip
    first = re.match(r"CUDA (\S+)", sentence)
    assert first
    later = max(counts.by_release("cuda"), key=lambda item: tuple(map(int, item.split("."))))
    changed = sentence.replace(f"CUDA {first[1]} is", f"CUDA {later} is", 1)
    assert [found for found, _ in check({key: changed}, counts, names(counts))]


def test_what_a_release_builds_for_is_checked(counts: Counts, replies: dict[str, str]) -> None:
    key, sentence = next((key, sentence) for key, sentence in replies.items() if key.startswith("supported ") and "; not for " in sentence)  # fmt: skip
    assert list(check({key: sentence.replace("; not for ", ", sm_120; not for ", 1)}, counts, names(counts)))
    key, sentence = next((key, sentence) for key, sentence in replies.items() if key.startswith("release ") and " either." in sentence)  # fmt: skip
    assert list(
        check({key: re.sub(r"; (\S+ \S+) builds none of", r"; \1 builds all of", sentence)}, counts, names(counts))
    )


@pytest.mark.parametrize(
    ("key", "true", "false"),
    [
        ("code sm_90 100", "In part. A cubin for sm_90 does not run", "Yes. A cubin for sm_90 runs"),
        (
            "code sm_75 80",
            "In part. A cubin for sm_75 does not run on compute capability 8.0 of Ampere. PTX for compute_75 does: the driver compiles it",
            "No. Neither a cubin for sm_75 nor PTX for compute_75 runs on compute capability 8.0 of Ampere",
        ),
        ("code sm_90a 90", "sm_90a", "sm_90"),
        ("hosts cuda 12.4", "gcc up to 13", "gcc up to 14"),
        ("host gcc 13 12.4", "Yes. ", "No. "),
        ("host gcc 14", "CUDA 12.8", "CUDA 12.9"),
        ("limits h100", "2,048 threads", "1,536 threads"),
        ("limits mi300x", "of 64", "of 32"),
        ("limits a100", "65,535 blocks", "65,536 blocks"),
        ("first t4", "CUDA 10.0", "CUDA 10.1"),
    ],
)
def test_another_fact_is_false(key: str, true: str, false: str, counts: Counts, replies: dict[str, str]) -> None:
    assert not list(check({key: replies[key]}, counts, names(counts)))
    changed = replies[key].replace(true, false)
    assert changed != replies[key]
    assert list(check({key: changed}, counts, names(counts)))


def test_another_driver_is_false(counts: Counts, replies: dict[str, str]) -> None:
    key, sentence = next((key, sentence) for key, sentence in replies.items() if key.startswith("driver "))
    changed = re.sub(r"driver \d+", "driver 400", sentence)
    assert changed != sentence
    assert list(check({key: changed}, counts, names(counts)))


def test_another_processor_of_amd_is_false(counts: Counts, replies: dict[str, str]) -> None:
    key = "capability mi300x"
    assert list(check({key: replies[key].replace("gfx942", "gfx90a")}, counts, names(counts)))
