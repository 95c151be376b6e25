"""Folding tables of versions into blocks with one outcome per target."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.support import Block, fold

GOOD, BAD = "built", "rejected at compile"
OUTER, INNER, TARGETS = ["9.0", "10.0", "11.0"], ["12.4", "12.10", "13.0"], ["sm_80", "sm_90"]


def test_nothing_gives_no_block() -> None:
    assert fold({}) == []


def test_versions_that_agree_are_one_block_in_the_order_of_numbers() -> None:
    row = {"sm_80": GOOD, "sm_90": BAD}
    grid = {outer: dict.fromkeys(("13.0", "12.10", "12.4"), row) for outer in ("10.0", "9.0")}
    assert fold(grid) == [Block(["9.0", "10.0"], ["12.4", "12.10", "13.0"], row)]


def test_the_outer_axis_folds_first() -> None:
    grid = {outer: {"12.4": {"sm_80": GOOD}, "13.0": {"sm_80": BAD}} for outer in ("9.0", "10.0")}
    assert fold(grid) == [
        Block(["9.0", "10.0"], ["12.4"], {"sm_80": GOOD}),
        Block(["9.0", "10.0"], ["13.0"], {"sm_80": BAD}),
    ]


def test_a_version_between_that_differs_parts_its_neighbours() -> None:
    grid = {outer: {"12.4": {"sm_80": BAD if outer == "10.0" else GOOD}} for outer in OUTER}
    assert [(block.outer, block.row["sm_80"]) for block in fold(grid)] == [
        (["9.0"], GOOD),
        (["10.0"], BAD),
        (["11.0"], GOOD),
    ]


def test_targets_that_only_one_version_tried_do_not_part_them() -> None:
    grid = {"9.0": {"12.4": {"sm_80": GOOD}}, "10.0": {"12.4": {"sm_80": GOOD, "sm_90": BAD}}}
    assert fold(grid) == [Block(["9.0", "10.0"], ["12.4"], {"sm_80": GOOD, "sm_90": BAD})]


def test_versions_that_share_no_target_are_not_one() -> None:
    grid = {"9.0": {"12.4": {"sm_80": GOOD}}, "10.0": {"12.4": {"sm_90": GOOD}}}
    assert len(fold(grid)) == 2


def test_versions_that_share_no_release_are_one_where_each_is_of_one_piece() -> None:
    one = {"9.0": {"12.4": {"sm_80": GOOD}}, "10.0": {"13.0": {"sm_80": GOOD}}}
    assert fold(one) == [Block(["9.0", "10.0"], ["12.4", "13.0"], {"sm_80": GOOD})]
    torn = {"9.0": {"12.4": {"sm_80": GOOD}, "12.10": {"sm_80": BAD}}, "10.0": {"13.0": {"sm_80": BAD}}}
    assert [block.outer for block in fold(torn)] == [["9.0"], ["9.0"], ["10.0"]]


@given(
    st.dictionaries(
        st.sampled_from(list(product(OUTER, INNER, TARGETS))), st.sampled_from([GOOD, GOOD, BAD]), min_size=1
    )
)
def test_every_outcome_can_be_read_from_exactly_one_block(points: dict[tuple[str, str, str], str]) -> None:
    grid: dict[str, dict[str, dict[str, str]]] = {}
    for (outer, inner, target), outcome in points.items():
        grid.setdefault(outer, {}).setdefault(inner, {})[target] = outcome
    blocks = fold(grid)
    for (outer, inner, target), outcome in points.items():
        (block,) = (block for block in blocks if outer in block.outer and inner in block.inner)
        assert block.row[target] == outcome
