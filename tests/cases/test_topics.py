"""Topics of the library."""

from __future__ import annotations

from harness.cases.bundled import library_topics, packaged_cases, topic_rank
from harness.cases.discovery import find_cases


def test_every_topic_has_a_title_and_a_line_about_it() -> None:
    topics = {path.parent.parent.name for path in find_cases(packaged_cases())}
    assert set(library_topics()) == topics
    assert all(topic.title and topic.about for topic in library_topics().values())


def test_topics_of_a_project_come_last() -> None:
    assert [topic_rank("headers"), topic_rank("cccl")] == [0, 1]
    assert topic_rank("mine") == len(library_topics())
