"""``--where``: which cells and records commands take, and ``-k`` as it was before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli.complete import where_of
from harness.cli.find_cell import one_cell
from harness.engine.environment import Environment
from harness.engine.plan import choose, choose_backends, plan
from harness.errors import NothingToRun, UsageError
from harness.hints import hint
from harness.model import Case, Target, ToolkitRef, Variant
from harness.protocol.probes import Distribution

HERE = Environment(
    name="e",
    python="python",
    version="3.11.7",
    distributions={"numba": Distribution("0.59.1")},
)
CASES = [
    Case(
        name=name, path=Path("c"), title=name, sources=dict.fromkeys(languages, Path("k")),
        variants=tuple(Variant(labels={"size": size}, definitions={}) for size in (1, 2)),
    )
    for name, languages in (("wmma/half", ["cuda"]), ("sync/grid", ["cuda", "python"]))
]  # fmt: skip
CELLS = plan(
    CASES,
    choose_backends("nvrtc,numba", HERE),
    [ToolkitRef(release=release, headers=release) for release in ("12.4", "13.0")],
    [Target.parse("sm_80"), Target.parse("sm_90a")],
    HERE,
)


def chosen(words: str) -> list[str]:
    where = where_of(None, words)
    assert where is not None
    return [cell.id for cell in choose(CELLS, where)]


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("wmma", r"wmma"), ("WMMA", r"wmma"), ("not wmma", r"^(?!.*wmma)"), ("sm_90a and numba", r"numba.*sm_90a"),
        ("wmma or numba", r"wmma|numba"), ("not (wmma or numba)", r"^(?!.*(wmma|numba))"), ("size=2 and not 13.0", r"size=2.*cuda12\.4"),
        ("wmma and sm_80 or numba and sm_90a", r"wmma.*sm_80|numba.*sm_90a"), ("not not wmma", "wmma"), ("[size=1]", r"\[size=1\]"),
    ],
)  # fmt: skip
def test_words_choose_as_before(words: str, pattern: str) -> None:
    expected = [cell.id for cell in CELLS if re.search(pattern, cell.id)]
    assert chosen(words) == expected
    assert 0 < len(expected) < len(CELLS)


@pytest.mark.parametrize(
    "words",
    ["(wmma", "wmma)", "and", "wmma and", "or wmma", "not", "()", "wmma numba", "(((", "wmma or or numba", "(wmma) (numba)", "wmma ()",
     "(" * 3000 + "wmma" + ")" * 3000],
)  # fmt: skip
def test_words_that_cannot_be_read(words: str) -> None:
    with pytest.raises(UsageError, match=r"^cannot read -k [^\n]*--where"):
        chosen(words)


@given(
    st.lists(st.sampled_from(["wmma", "and", "or", "not", "(", ")", "sm_80", " ", '"', "\\", "'"]), max_size=12).map(
        " ".join
    )
)
def test_any_words_are_read_or_refused(words: str) -> None:
    if words.strip():
        try:
            assert set(chosen(words)) <= {cell.id for cell in CELLS}
        except (UsageError, NothingToRun):
            pass


def test_the_hint_has_the_condition_to_write(capfd: pytest.CaptureFixture[str]) -> None:
    hint.cache_clear()
    assert (
        where_of('cc >= "9.0"', "tf32 and not (jitify)")
        == '(cc >= "9.0") and ("tf32" in cell and not ("jitify" in cell))'
    )
    assert where_of(None, None) is None
    said = capfd.readouterr().err
    assert (
        said
        == """cumatrix: -k will go with the next release: write --where '"tf32" in cell and not ("jitify" in cell)'\n"""
    )


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
