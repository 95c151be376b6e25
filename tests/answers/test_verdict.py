"""What versions come to, in a few words."""

from __future__ import annotations

import pytest

from harness.answers.verdict import VersionGrid, picked, verdict_of

KNOWN = {"cupy": ("12.3", "13.0", "13.1", "13.2", "13.3", "13.6"), "cuda": ("11.8", "12.4", "12.6", "12.9", "13.0")}


@pytest.mark.parametrize(
    ("letters", "text", "note"),
    [
        ("wwww", "works", ""),
        ("xxxx", "never", ""),
        ("kkkk", "known fault", ""),
        ("kkks", "known fault", ""),
        ("....", "not tried", ""),
        ("uuu.", "not available", ""),
        ("nnn.", "not applicable", ""),
        ("nwu.", "works", ""),
        ("xwww", "works since 13.0", ""),
        ("xxww", "works since 13.1", ""),
        ("xx.w", "works since 13.6", "13.1 to 13.3 untried"),
        ("xxxw", "works since 13.6", "13.2 to 13.3 untried"),
        ("wwxx", "works up to 13.0", ""),
        ("wkww", "broken in 13.0 only", ""),
        ("wkxw", "broken in 13.0 to 13.1 only", "13.2 to 13.3 untried"),
        ("xwwx", "only in 13.0 to 13.1", "13.2 to 13.3 untried"),
        ("xwxw", "works since 13.6", "and in 13.0"),
    ],
)
def test_along_the_versions_of_a_library(letters: str, text: str, note: str) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.0", "13.1", "13.6"), ("12.4",), letters), KNOWN, "cupy")
    assert (verdict.text, verdict.note) == (text, note)


@pytest.mark.parametrize(
    ("letters", "kind", "text", "note"),
    [
        # 12.3 and 13.1, with CUDA 11.8, 12.4 and 12.9.
        ("xwwxww", "since", "works since CUDA 12.4", ""),
        ("wwxwwx", "until", "works up to CUDA 12.4", "12.6 untried"),
        ("wxxwww", "since", "works since 13.1", "12.3: works up to CUDA 11.8"),
        ("wwwxxw", "part", "13.1: works since CUDA 12.9", "12.3: works; 12.6 untried"),
        ("wwx.xx", "until", "not since 13.1", "12.3: works up to CUDA 12.4"),
        (".w..x.", "until", "works up to 12.3", "13.0 untried"),
    ],
)
def test_along_two_axes(letters: str, kind: str, text: str, note: str) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.1"), ("11.8", "12.4", "12.9"), letters), KNOWN, "cupy")
    assert (verdict.kind, verdict.text, verdict.note) == (kind, text, note)


@pytest.mark.parametrize(
    ("libraries", "toolkits", "text"),
    [
        (["12.3"], ["11.8"], "works"),
        (["12.3"], ["12.9"], "does not work: a known fault"),
        (["12.3"], None, "works with CUDA 11.8, 12.4; not with CUDA 12.9"),
        (None, ["12.9"], "works with 13.1; not with 12.3"),
        (None, None, "works in 4 of 5 combinations"),
        (["13.1"], ["12.4"], "not tried"),
        (["14"], None, "not tried"),
    ],
)
def test_some_of_the_versions(libraries: list[str] | None, toolkits: list[str] | None, text: str) -> None:
    assert picked(VersionGrid(("12.3", "13.1"), ("11.8", "12.4", "12.9"), "wwkw.w"), libraries, toolkits).text == text
