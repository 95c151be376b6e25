"""``--where``: the cells and records that commands select."""

from __future__ import annotations

import pytest

from harness.cli.options import one_cell
from harness.errors import UsageError

IDS = ["a/b nvrtc cuda12.9 sm_90", "a/b nvrtc cuda12.9 sm_90a", "a/b numba cuda12.9 sm_90"]


@pytest.mark.parametrize(
    ("what", "place"),
    [("a/b nvrtc cuda12.9 sm_90", 0), ("sm_90a", 1), ("numba", 2), ("b nvrtc sm_90a", 1), ("numba a/b", 2)],
)
def test_one_cell_is_meant_by_its_id_or_what_no_other_has(what: str, place: int) -> None:
    assert one_cell(what, IDS) == IDS[place]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("torch", r"^no cell of 3 has 'torch' in its id; ids look like a/b nvrtc"),
        (
            "nvrtc",
            r"^2 cells have 'nvrtc' in their ids, say more, as with --where: a/b nvrtc cuda12\.9 sm_90; a/b nvrtc",
        ),
        ("", r"^there are 3 such cells, say more"),
    ],
)
def test_none_or_several_are_told(what: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        one_cell(what, IDS)
