"""Stories of failures: the outcome of each release, and its cells."""

from __future__ import annotations

from record_builders import cell, record, rejected

from harness.cases.discovery import find_cases
from harness.published import ENVIRONMENT
from harness.records import Record
from harness.report.page_data import STORIES, stories_of

from .test_publish import CASES


def numba(version: str, *, fails: bool = False, own: bool = False, cache: bool = True) -> Record:
    of = cell("cooperative/numba-9432", {"cache": cache}, backend="numba", library=version)
    made = record(of, rejected("No definition for lowering") if fails else None)
    return made if own else {**made, "environment": ENVIRONMENT}


def test_releases_that_say_the_same_are_one_row_and_own_cells_have_a_column() -> None:
    told = stories_of(
        [
            *(numba(version) for version in ("0.57.1", "0.58.1", "0.59.1", "0.60.0")),
            numba("0.59.0", fails=True),
            numba("0.59.1", own=True),
        ]
    )
    (story,) = told
    assert (story["name"], story["target"]) == ("Numba #9432", "sm_80")
    rows = [(row["versions"], [item["outcome"] for item in row["own"]], [item["outcome"] for item in row["published"]]) for row in story["rows"]]  # fmt: skip
    assert rows == [
        ("0.57.1 to 0.58.1", [], ["builds"]),
        ("0.59.0", [], ["rejected at compile"]),
        ("0.59.1", ["builds"], ["builds"]),
        ("0.60.0", [], ["builds"]),
    ]
    assert "No definition for lowering" in story["rows"][1]["published"][0]["message"]


def test_there_is_a_case_for_each_story_and_none_is_told_without_cells() -> None:
    assert len(find_cases(CASES, [story.case for story in STORIES])) == len(STORIES) == 3
    assert stories_of([record()]) == []
