"""The sentences of docs/threads.md agree with the published matrix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.answers.answer import sentence_of
from harness.answers.feature import feature_page
from harness.answers.store import Store, read_packed
from harness.cli.ask_output import AnswerSource, put
from harness.report.case import page_names

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threads.md").read_text("utf-8")
ROWS = re.findall(r"^\| \[.*?\]\((\S+)\): .*? \| `(\S+)` \| (.*?) \| ((?:yes|no|in part)\b.*) \|$", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def store() -> Store:
    return read_packed(ROOT / "reports" / "matrix" / "answers.json.gz")


def test_ten_threads() -> None:
    assert len({thread for thread, *_ in ROWS}) == 10
    answers = [re.split(r"[:,]", answer)[0] for *_, answer in ROWS]
    assert (answers.count("yes"), answers.count("in part"), answers.count("no")) == (7, 1, 2)
    assert "Seven answer, one in part, two do not." in PAGE


@pytest.mark.parametrize(("page", "sentence"), [row[1:3] for row in ROWS], ids=[row[1] for row in ROWS])
def test_a_page_says_what_the_table_has(store: Store, page: str, sentence: str) -> None:
    cases = {f"cases/{file}": case for case, file in page_names(store.features).items()}
    found = feature_page(store.known([cases[page]]), cases[page])
    whole = sentence_of([item.finding for item in found.variants], ())
    # The table contains the beginning of a long sentence.
    start = sentence.removesuffix(" …")
    assert whole.startswith(start)
    assert (start == whole) is (start == sentence)
    assert len(start.split()) >= min(12, len(whole.split()))


@pytest.mark.parametrize(
    ("question", "lead"), [("bf16 wmma sm_75", "No."), ("wgmma sm_90", "No."), ("wgmma sm_90a", "Yes.")]
)
def test_a_narrower_question_has_a_narrower_answer(store: Store, question: str, lead: str) -> None:
    ((_, answer),) = put(question, [AnswerSource(name="matrix", title="", store=store)])[2]
    assert answer.sentence.startswith(lead)
