"""The pages next to the matrix: each text appears once."""

from __future__ import annotations

from record_builders import built, cell, record, rejected

from harness.analysis import make_frame
from harness.report.sections import make_sections


def test_a_disagreement_that_cases_and_variants_have_in_common_is_told_once() -> None:
    records = []
    for case, message in (("a/one", "broken"), ("a/two", "broken"), ("a/three", "something else")):
        for library in ("0.62.1", "0.63.0"):
            for n in (1, 2):
                of = cell(case, {"n": n}, backend="numba", library=library)
                records.append(record(of, rejected(message) if library == "0.63.0" else built()))
    (found,) = [item.values for item in make_sections(make_frame(records), None) if item.name == "disagreements"]
    told = [(first.case, variants, [case for case, _ in others]) for first, variants, _, others in found["items"]]
    assert sorted(told) == [("a/one", ["n=1", "n=2"], ["a/two"]), ("a/three", ["n=1", "n=2"], [])]
    assert found["count"] == 2
