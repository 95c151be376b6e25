"""CUDA that a library bundles: the library's release determines it, and no statement about CUDA counts it."""

from __future__ import annotations

from harness.answers.answer import known_of_itself
from harness.answers.cells import COLUMNS, Feature, Known, make_row
from harness.answers.comparison import Comparison
from harness.answers.table import field_of


def known_of(*cells: tuple[str, str, str, str]) -> Known:
    """Return cells of a case with Triton for sm_103a: version, toolkit, status, message."""
    rows = []
    for version, toolkit, status, message in cells:
        place = f"triton/case triton@{version} cuda{toolkit} sm_103a", "triton/case", "", "triton", version, toolkit
        rows.append(make_row(*place, "", "sm_103a", status, status, message))
    assert len(rows[0]) == len(COLUMNS)
    return Known(rows=rows, features={"triton/case": Feature(case="triton/case", title="A case", topic="triton")})


def test_a_change_with_the_bundled_cuda_is_one_of_the_library() -> None:
    known = known_of(("3.7.1", "12.8@bundled", "rejected", "no"), ("3.8.0", "12.9@bundled", "built", ""))
    (entry,) = known.entries
    verdict = field_of(entry, "sm_103a").verdict
    assert (verdict.text, verdict.note, verdict.tried) == ("builds since 3.8.0", "", "3.7.1, 3.8.0")
    compared = Comparison(known)
    assert [pair.fixes for pair in compared.pairs("triton", "3.7.1", "3.8.0")] == [True]
    assert compared.releases == {"triton": ("3.7.1", "3.8.0")}


def test_a_requested_cuda_is_a_series_of_its_own() -> None:
    """A Triton 3.5.1 with another ptxas than its own does not determine the first CUDA release that Triton builds with."""
    known = known_of(("3.5.1", "12.8@bundled", "rejected", "no"), ("3.5.1", "12.9", "built", ""))
    found = {entry.tool: field_of(entry, "sm_103a").verdict.text for entry in known.entries}
    assert found == {"triton": "0 of 1", "triton cuda12.9": "builds"}


def test_what_stopped_before_the_architecture_counted_tells_nothing_of_it() -> None:
    unknown = "ptxas: Value 'sm_103a' is not defined for option 'gpu-name'"
    known = known_of(
        ("3.4.0", "12.8@bundled", "rejected", unknown),
        ("3.5.0", "12.8@bundled", "crashed", "the compiler's process was ended by signal 6 (Aborted)"),
        ("3.6.0", "12.8@bundled", "built", ""),
    )
    (entry,) = known_of_itself(known).entries
    assert field_of(entry, "sm_103a").verdict.text == "builds since 3.6.0"
    assert {version for version, _, _ in entry.proofs} == {"3.4.0", "3.6.0"}
