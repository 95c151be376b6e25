"""Topics of the library."""

from __future__ import annotations

from harness.cases.discovery import case_rank, find_cases, library_topics, topic_rank
from harness.cases.sources import packaged_cases


def test_every_topic_has_a_title_and_a_line_about_it() -> None:
    topics = {path.parent.parent.name for path in find_cases(packaged_cases())}
    assert set(library_topics()) == topics
    assert all(topic.title and topic.about for topic in library_topics().values())


def test_topics_of_a_project_come_last() -> None:
    assert [topic_rank("headers"), topic_rank("cccl")] == [0, 1]
    assert topic_rank("mine") == len(library_topics())


def test_cases_with_more_upstream_threads_come_first_within_their_topic() -> None:
    issue = "https://github.com/cupy/cupy/issues/1"
    links = {
        "two": [issue, "https://github.com/NVIDIA/cccl/pull/2"],
        "one": [issue, f"{issue}#issuecomment-3", "https://docs.nvidia.com/cuda/"],
        "none": ["https://docs.nvidia.com/cuda/a", "https://docs.nvidia.com/cuda/b"],
    }
    ranks = {name: case_rank("cccl", own) for name, own in links.items()}
    assert sorted(ranks, key=ranks.__getitem__) == ["two", "one", "none"]
    assert case_rank("headers", []) < ranks["two"] < case_rank("mine", links["two"])
    # Topics that the library does not have stay apart.
    assert case_rank("mine", []) < case_rank("yours", [issue])
