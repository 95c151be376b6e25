"""Order and folding of the rows of the matrix."""

from __future__ import annotations

from itertools import product

import pytest
from packaging.version import Version
from record_builders import cell, plan, record

from harness.analysis import cells_frame as frame
from harness.matrix.axes import COLUMNS, ROWS, column_key, fold_targets, version_key
from harness.records import merge
from harness.report.overview import totals


def test_versions_are_in_the_order_of_pep_440() -> None:
    texts = (
        *("1.0.dev1", "1.0a1.dev2", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0+cu118", "1.0+cu118.2", "1.0+2", "1.0.post1.dev1"),
        *("1.0.post1", "1.0.1", "1.1", "1!0.1", "1.0.0", "1.0.dev0", "1.0rc1.post2", "12.4", "12.10", "1.0+10"),
    )  # fmt: skip
    for one, other in product(texts, repeat=2):
        assert (version_key(one) < version_key(other)) == (Version(one) < Version(other)), (one, other)
        assert (version_key(one) == version_key(other)) == (Version(one) == Version(other)), (one, other)
    assert version_key("none") < version_key("0.1") and version_key("12.4") < version_key("12.4@local")


def test_columns_are_in_the_order_of_backends_versions_and_targets() -> None:
    cells = [
        cell(backend="torch-nvcc", library="2.5", target="sm_80"),
        cell(backend="numba", library="0.61.0", target="sm_80"),
        cell(backend="cupy-jitify", library="13.6.0", target="sm_80"),
        cell(library="13.10.0", target="sm_80"),
        cell(library="13.9.0", toolkit="13.0", target="sm_80"),
        cell(library="13.9.0", toolkit="12.10", target="compute_50"),
        cell(library="13.9.0", toolkit="12.10", target="sm_100"),
        cell(library="13.9.0", toolkit="12.10", target="sm_90a"),
        cell(library="13.9.0", toolkit="12.10", target="sm_90"),
        cell(library="13.9.0", toolkit="12.9", headers="12.10", target="sm_80"),
        cell(library="13.9.0", toolkit="12.9", target="sm_80"),
        cell(library="13.9.0rc1", target="sm_80"),
        cell(backend="nvrtc", library="", target="sm_80"),
    ]
    table = frame(merge(map(record, cells), []))
    columns = set(table[[*COLUMNS]].itertuples(index=False, name=None))
    assert sorted(columns, key=lambda column: column_key(*column)) == [
        ("nvrtc", "", "12.4", "", "sm_80"),
        ("cupy-nvrtc", "13.9.0rc1", "12.4", "", "sm_80"),
        ("cupy-nvrtc", "13.9.0", "12.9", "", "sm_80"),
        ("cupy-nvrtc", "13.9.0", "12.9+headers12.10", "", "sm_80"),
        ("cupy-nvrtc", "13.9.0", "12.10", "", "sm_90"),
        ("cupy-nvrtc", "13.9.0", "12.10", "", "sm_90a"),
        ("cupy-nvrtc", "13.9.0", "12.10", "", "sm_100"),
        ("cupy-nvrtc", "13.9.0", "12.10", "", "compute_50"),
        ("cupy-nvrtc", "13.9.0", "13.0", "", "sm_80"),
        ("cupy-nvrtc", "13.10.0", "12.4", "", "sm_80"),
        ("cupy-jitify", "13.6.0", "12.4", "", "sm_80"),
        ("numba", "0.61.0", "12.4", "", "sm_80"),
        ("torch-nvcc", "2.5", "12.4", "", "sm_80"),
    ]


def test_rows_are_in_natural_order() -> None:
    cells = [cell("b/x"), cell("a/y", {"n": 10}), cell("a/y", {"n": 9}), cell("a/x")]
    table = frame(merge(map(record, cells), []))
    assert list(table[[*ROWS]].itertuples(index=False, name=None)) == [
        ("a", "a/x", ""),
        ("a", "a/y", "n=9"),
        ("a", "a/y", "n=10"),
        ("b", "b/x", ""),
    ]


def test_missing_and_not_planned_are_different() -> None:
    planned = [cell(target="sm_80"), cell(target="sm_90"), cell("other/one", target="sm_80")]
    table = frame(merge([record(planned[0]), record(planned[2])], [plan(*planned)]))
    assert table["mark"].tolist() == ["built", "built", "missing"]
    assert totals(table) == {"built": 2, "missing": 1}


def test_only_missing_cells_make_a_matrix_too() -> None:
    table = frame(merge([], [plan(cell())]))
    assert totals(table) == {"missing": 1}
    assert table["status"].tolist() == [""]


AXIS = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "compute_80", "compute_90"]


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([], ""),
        (["sm_80"], "sm_80"),
        (["sm_86", "sm_80"], "sm_80, sm_86"),
        (["sm_75", "sm_80", "sm_86"], "sm_75–sm_86"),
        (["sm_75", "sm_80", "sm_86", "sm_100"], "sm_75–sm_86, sm_100"),
        (["sm_90", "sm_100", "compute_80"], "sm_90, sm_100, compute_80"),
        (AXIS, "sm_75–sm_100, compute_80, compute_90"),
    ],
)
def test_targets_fold_into_ranges_of_what_was_asked_for(chosen: list[str], text: str) -> None:
    assert fold_targets(chosen, AXIS) == text
