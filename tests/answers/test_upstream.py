"""Questions from upstream reports and of maintainers (upstream.toml), asked of the published matrix."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.answers.store import Store, read_packed
from harness.cli.ask_output import AnswerSource, elsewhere, put
from harness.published import ANSWERS, published_folder

QUESTIONS: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "upstream.toml").read_text("utf-8"))[
    "question"
]


@pytest.fixture(scope="module")
def source() -> AnswerSource:
    folder = published_folder()
    assert folder is not None
    store: Store = read_packed(folder / ANSWERS)
    return AnswerSource(name="published", title="the published matrix", store=store)


def test_none_is_left_out() -> None:
    assert len({question["asked"] for question in QUESTIONS}) == 263


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["asked"])
def test_the_terminal_answers(question: dict[str, Any], source: AnswerSource) -> None:
    asked, vocabulary, ((_, found),) = put(question["asked"], [source])
    assert re.search(question["sentence"], found.sentence)
    assert found.proven is question.get("known", True)
    if not found.proven:
        assert not any(said.proof for finding in found.findings for said in finding.tools) or found.lacking
    elif not found.reply:
        assert elsewhere([(source, found)], asked, vocabulary) == ("", [])
