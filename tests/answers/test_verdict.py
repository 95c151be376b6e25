"""Statements about versions, and the pairs of cells that they require."""

from __future__ import annotations

import pytest

from harness.answers.verdict import Claim, VersionGrid, picked, verdict_of
from harness.matrix.ranges import spell_tried

KNOWN = {"cupy": ("12.3", "13.0", "13.1", "13.2", "13.3", "13.6"), "cuda": ("11.8", "12.4", "12.6", "12.9", "13.0")}


@pytest.mark.parametrize(
    ("letters", "kind", "text", "note"),
    [
        ("wwww", "works", "builds", ""),
        ("xxxx", "never", "0 of 4", ""),
        ("ssss", "never", "0 of 4", ""),
        ("kkxk", "never", "0 of 4", ""),
        ("kkkk", "fault", "known fault, 0 of 4", ""),
        ("kkks", "fault", "known fault, 0 of 4", ""),
        ("....", "untried", "not tried", ""),
        ("uuu.", "untried", "not available", ""),
        ("nnn.", "na", "not applicable", ""),
        ("nwu.", "works", "builds", ""),
        ("oo.n", "untried", "no kernels", ""),
        ("oow.", "works", "builds", ""),
        ("xwww", "since", "builds since 13.0 (CUDA 12.4)", ""),
        ("xxww", "since", "builds since 13.1 (CUDA 12.4)", ""),
        ("xx.w", "since", "builds since 13.6 (CUDA 12.4)", "13.1 to 13.3 untried"),
        # Inapplicable and unavailable cells count as tried.
        ("xxnw", "since", "builds since 13.6 (CUDA 12.4)", "13.2, 13.3 untried"),
        ("xxxw", "since", "builds since 13.6 (CUDA 12.4)", "13.2, 13.3 untried"),
        ("wwxx", "until", "builds up to 13.0 (CUDA 12.4)", ""),
        ("wkww", "but", "builds except 13.0 (CUDA 12.4)", ""),
        ("wkxw", "but", "builds except 13.0, 13.1 (CUDA 12.4)", "13.2, 13.3 untried"),
        ("xwwx", "until", "builds only with 13.0, 13.1 (CUDA 12.4)", "13.2, 13.3 untried"),
        ("wxwx", "until", "builds only with 12.3, 13.1 (CUDA 12.4)", "13.2, 13.3 untried"),
        ("xwxw", "but", "builds since 13.0 except 13.1 (CUDA 12.4)", "13.2, 13.3 untried"),
    ],
)
def test_along_the_versions_of_a_library(letters: str, kind: str, text: str, note: str) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.0", "13.1", "13.6"), ("12.4",), letters), KNOWN, "cupy")
    assert (verdict.kind, verdict.text, verdict.note) == (kind, text, note)
    assert verdict.cells == sum(letter in "wxks" for letter in letters)
    assert (verdict.works, verdict.silent) == (kind in ("works", "since", "but"), kind in ("na", "untried"))


@pytest.mark.parametrize(
    ("letters", "text", "note"),
    [
        ("xwxxw", "builds since 13.6 (CUDA 12.4)", "and with 13.0; 13.3 untried"),
        ("xwxww", "builds since 13.0 except 13.1 (CUDA 12.4)", ""),
    ],
)
def test_failures_as_frequent_as_builds_are_no_exception(letters: str, text: str, note: str) -> None:
    grid = VersionGrid(("12.3", "13.0", "13.1", "13.2", "13.6"), ("12.4",), letters)
    verdict = verdict_of(grid, KNOWN, "cupy")
    assert (verdict.kind, verdict.text, verdict.note) == ("but", text, note)


def test_four_ranges_of_tried_versions_are_named_and_five_counted() -> None:
    known = [str(number) for number in range(9)]
    for count, tried in ((4, "0, 2, 4, 6, CUDA 12.4"), (5, "5 of 0 to 8, CUDA 12.4")):
        grid = VersionGrid(tuple(known[: 2 * count : 2]), ("12.4",), "w" * count)
        assert verdict_of(grid, {"cupy": known}, "cupy").tried == tried


def test_between_names_that_are_no_versions_nothing_is_untried() -> None:
    for names in (("local", "13.1"), ("12.3", "local")):
        assert verdict_of(VersionGrid(names, ("12.4",), "xw"), KNOWN, "cupy").note == ""


def test_of_many_versions_three_are_described() -> None:
    libraries, rows = ("12.3", "13.0", "13.1", "13.2", "13.3", "13.6"), ("wxx", "xwx", "wwx", "xww", "xxw", "www")
    texts = [
        "builds up to CUDA 11.8",
        "builds only with CUDA 12.4",
        "builds up to CUDA 12.4",
        "builds since CUDA 12.4",
    ]
    phrases = [f"{name}: {text}" for name, text in zip(libraries, [*texts, "builds since CUDA 12.9"], strict=False)]
    for skipped, more in ((0, "; and 2 more"), (1, "; and 1 more"), (2, ""), (3, "")):
        grid = VersionGrid(libraries[skipped:], ("11.8", "12.4", "12.9"), "".join(rows[skipped:]))
        verdict = verdict_of(grid, {}, "cupy")
        assert verdict.text == "builds since 13.6"
        assert verdict.note == "; ".join(reversed(phrases[skipped:][-3:])) + more


@pytest.mark.parametrize(
    ("letters", "kind", "text", "note"),
    [
        # 12.3 and 13.1, with CUDA 11.8, 12.4 and 12.9.
        ("xwwxww", "since", "builds since CUDA 12.4", ""),
        ("wwxwwx", "until", "builds up to CUDA 12.4", "CUDA 12.6 untried"),
        ("wxxwww", "since", "builds since 13.1", "12.3: builds up to CUDA 11.8; 13.0 untried"),
        ("wwwxxw", "part", "13.1: builds since CUDA 12.9, CUDA 12.6 untried", "12.3: builds"),
        (
            "wwx.xx",
            "until",
            "does not build since 13.1",
            "12.3: builds up to CUDA 12.4, CUDA 12.6 untried; 13.0 untried",
        ),
        (".w..x.", "until", "builds up to 12.3 (CUDA 12.4)", "13.0 untried"),
        # 13.1 builds with 12.9, and 12.3 is rejected with 11.8: either change can be the reason.
        (
            "x....w",
            "part",
            "builds with 13.1 and CUDA 12.9; not with 12.3 and CUDA 11.8",
            "library and CUDA changed together",
        ),
        (
            "w....x",
            "until",
            "builds with 12.3 and CUDA 11.8; not with 13.1 and CUDA 12.9",
            "library and CUDA changed together",
        ),
    ],
)
def test_along_two_axes(letters: str, kind: str, text: str, note: str) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.1"), ("11.8", "12.4", "12.9"), letters), KNOWN, "cupy")
    assert (verdict.kind, verdict.text, verdict.note) == (kind, text, note)


@pytest.mark.parametrize(
    ("libraries", "toolkits", "kind", "text"),
    [
        (["12.3"], ["11.8"], "works", "builds"),
        (["12.3"], ["12.9"], "fault", "does not build, 0 of 1: a known fault"),
        (["12.3"], None, "part", "builds with CUDA 11.8, 12.4; not with CUDA 12.9"),
        (None, ["12.9"], "part", "builds with 13.1; not with 12.3, 14.0"),
        (None, None, "part", "builds in 4 of 8 combinations"),
        (["13.1"], ["12.4"], "untried", "not tried"),
        (["15"], None, "untried", "not tried"),
        (["14.0"], None, "never", "does not build, 0 of 3"),
    ],
)
def test_some_of_the_versions(libraries: list[str] | None, toolkits: list[str] | None, kind: str, text: str) -> None:
    grid = VersionGrid(("12.3", "13.1", "14.0"), ("11.8", "12.4", "12.9"), "wwkw.wkxk")
    found = picked(grid, libraries, toolkits)
    assert (found.kind, found.text) == (kind, text)


def test_a_change_cites_two_cells_that_differ_in_its_axis_alone() -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.1"), ("11.8", "12.4"), "xxxw"), KNOWN, "cupy")
    assert (verdict.text, verdict.note) == ("13.1: builds since CUDA 12.4", "12.3: 0 of 2")
    assert verdict.claims == (Claim("cuda", ("13.1", "11.8"), ("13.1", "12.4"), True),)
    verdict = verdict_of(VersionGrid(("2.6", "2.11", "2.12"), ("12.4", "13.0"), "x..w.w"), {}, "torch")
    assert verdict.claims == ()


@pytest.mark.parametrize(
    ("letters", "changes"),
    [
        ("xxww", [("13.0", "13.1", True)]),
        ("wwxx", [("13.0", "13.1", False)]),
        ("wkww", [("12.3", "13.0", False), ("13.0", "13.1", True)]),
        ("xwwx", [("12.3", "13.0", True), ("13.1", "13.6", False)]),
        ("xwxw", [("12.3", "13.0", True), ("13.0", "13.1", False), ("13.1", "13.6", True)]),
    ],
)
def test_each_change_along_the_versions_cites_its_cells(letters: str, changes: list[tuple[str, str, bool]]) -> None:
    verdict = verdict_of(VersionGrid(("12.3", "13.0", "13.1", "13.6"), ("12.4",), letters), KNOWN, "cupy")
    expected = tuple(Claim("library", (before, "12.4"), (after, "12.4"), builds) for before, after, builds in changes)
    assert verdict.claims == expected


@pytest.mark.parametrize(
    ("libraries", "toolkits", "text"),
    [
        (("",), ("12.4", "12.9"), "0 of 2"),
        (("",), ("11.8", "12.4", "12.9"), "never (0 of 3)"),
        (("13.0", "13.1"), ("11.8", "12.4", "12.9"), "0 of 6"),
        (("12.3", "13.0", "13.1"), ("12.4",), "0 of 3"),
        (("12.3", "13.0", "13.1"), ("11.8", "12.4", "12.9"), "never (0 of 9)"),
    ],
)
def test_never_takes_three_releases_of_each_axis(
    libraries: tuple[str, ...], toolkits: tuple[str, ...], text: str
) -> None:
    grid = VersionGrid(libraries, toolkits, "x" * len(libraries) * len(toolkits))
    assert verdict_of(grid, KNOWN, "cupy").text == text


def test_a_range_of_tried_versions_contains_no_untried_one() -> None:
    grid = VersionGrid(("12.3", "13.1", "13.2", "13.3"), ("11.8", "12.9"), "wwwwwwww")
    assert verdict_of(grid, KNOWN, "cupy").tried == "12.3, 13.1 to 13.3, CUDA 11.8, 12.9"
    known = [str(number) for number in range(12)]
    assert spell_tried(known[::2], known, int) == "6 of 0 to 10"
