"""What versions come to, in a few words."""

from __future__ import annotations

import pytest

from harness.answers.verdict import VersionGrid, picked, verdict_of

KNOWN = {"cupy": ("12.3", "13.0", "13.1", "13.2", "13.3", "13.6"), "cuda": ("11.8", "12.4", "12.6", "12.9", "13.0")}


@pytest.mark.parametrize(
    ("letters", "kind", "text", "note"),
    [
        ("wwww", "works", "works", ""),
        ("xxxx", "never", "never", ""),
        ("ssss", "never", "never", ""),
        ("kkxk", "never", "never", ""),
        ("kkkk", "fault", "known fault", ""),
        ("kkks", "fault", "known fault", ""),
        ("....", "untried", "not tried", ""),
        ("uuu.", "untried", "not available", ""),
        ("nnn.", "na", "not applicable", ""),
        ("nwu.", "works", "works", ""),
        ("xwww", "since", "works since 13.0", ""),
        ("xxww", "since", "works since 13.1", ""),
        ("xx.w", "since", "works since 13.6", "13.1 to 13.3 untried"),
        ("xxxw", "since", "works since 13.6", "13.2 to 13.3 untried"),
        ("wwxx", "until", "works up to 13.0", ""),
        ("wkww", "but", "broken in 13.0 only", ""),
        ("wkxw", "but", "broken in 13.0 to 13.1 only", "13.2 to 13.3 untried"),
        ("xwwx", "until", "only in 13.0 to 13.1", "13.2 to 13.3 untried"),
        ("wxwx", "until", "only in 12.3, 13.1", "13.2 to 13.3 untried"),
        ("xwxw", "but", "works since 13.6", "and in 13.0"),
    ],
)
def test_along_the_versions_of_a_library(letters: str, kind: str, text: str, note: str) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.0", "13.1", "13.6"), ("12.4",), letters), KNOWN, "cupy")
    assert (verdict.kind, verdict.text, verdict.note) == (kind, text, note)
    assert (verdict.works, verdict.silent) == (kind in ("works", "since", "but"), kind in ("na", "untried"))


def test_between_names_that_are_no_versions_nothing_is_untried() -> None:
    for names in (("local", "13.1"), ("12.3", "local")):
        assert verdict_of(VersionGrid(names, ("12.4",), "xw"), KNOWN, "cupy").note == ""


def test_of_many_versions_three_are_described() -> None:
    libraries, rows = ("12.3", "13.0", "13.1", "13.2", "13.3", "13.6"), ("wxx", "xwx", "wwx", "xww", "xxw", "www")
    texts = ["works up to CUDA 11.8", "only in CUDA 12.4", "works up to CUDA 12.4", "works since CUDA 12.4"]
    phrases = [f"{name}: {text}" for name, text in zip(libraries, [*texts, "works since CUDA 12.9"], strict=False)]
    for skipped, more in ((0, "; and 2 more"), (1, "; and 1 more"), (2, ""), (3, "")):
        grid = VersionGrid(libraries[skipped:], ("11.8", "12.4", "12.9"), "".join(rows[skipped:]))
        verdict = verdict_of(grid, {}, "cupy")
        assert verdict.text == "works since 13.6"
        assert verdict.note == "; ".join(reversed(phrases[skipped:][-3:])) + more


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
    ("libraries", "toolkits", "kind", "text"),
    [
        (["12.3"], ["11.8"], "works", "works"),
        (["12.3"], ["12.9"], "fault", "does not work: a known fault"),
        (["12.3"], None, "part", "works with CUDA 11.8, 12.4; not with CUDA 12.9"),
        (None, ["12.9"], "part", "works with 13.1; not with 12.3, 14.0"),
        (None, None, "part", "works in 4 of 8 combinations"),
        (["13.1"], ["12.4"], "untried", "not tried"),
        (["15"], None, "untried", "not tried"),
        (["14.0"], None, "never", "does not work"),
    ],
)
def test_some_of_the_versions(libraries: list[str] | None, toolkits: list[str] | None, kind: str, text: str) -> None:
    grid = VersionGrid(("12.3", "13.1", "14.0"), ("11.8", "12.4", "12.9"), "wwkw.wkxk")
    found = picked(grid, libraries, toolkits)
    assert (found.kind, found.text) == (kind, text)
