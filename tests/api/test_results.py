"""Results and cells as objects, from handmade records."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from record_builders import built, cell, plan, record, rejected

import cumatrix
from harness.records import RecordWriter

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


def _some() -> cumatrix.Results:
    good = record(cell(target="sm_80"), built("sm_80", registers=40))
    bad = record(cell(target="sm_75"), rejected("device code does not support exception handling"))
    return cumatrix.Results([good, bad], missing=plan(cell(target="sm_90"))["cells"])


def test_every_public_name_is_there_and_is_documented() -> None:
    assert set(cumatrix.__all__) <= set(dir(cumatrix))
    assert [name for name in cumatrix.__all__ if not getattr(cumatrix, name).__doc__] == []
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = cumatrix.rum


def test_a_cell_has_what_its_record_has_and_more() -> None:
    good, bad = _some()
    assert (good.id, good.backend, good.target, good.built, good.as_expected) == (
        "wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_80", "cupy-nvrtc", "sm_80", True, True,
    )  # fmt: skip
    assert good.kernels == (cumatrix.Kernel(name="kernel", registers=40, shared=1024, spills=0),)
    assert (bad.built, bad.as_expected, bad.message) == (
        False,
        False,
        "device code does not support exception handling",
    )
    assert bad.diagnostics[0].line == 12
    assert repr(bad).startswith(
        "<Cell wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_75: rejected at compile (fail): device code"
    )
    assert pickle.loads(pickle.dumps(bad)) == bad != good
    with pytest.raises(AttributeError, match="a cell has no 'statos'"):
        _ = bad.statos
    with pytest.raises(AttributeError, match="read-only"):
        bad.status = "built"


def test_results_are_counted_chosen_and_told_apart() -> None:
    results = _some()
    assert results.counts == {"built": 1, "fail": 1, "missing": 1}
    assert not results.as_expected
    assert [each.target for each in results.unexpected] == ["sm_75"]
    assert [each.target for each in results.where("cc >= '8.0'")] == ["sm_80"]
    assert len(results.where("status == 'crashed'")) == 0
    assert not cumatrix.Results([]).as_expected
    assert [each.target for each in results[:1]] == ["sm_80"]
    with pytest.raises(cumatrix.UsageError, match="statos"):
        results.where("statos == 'built'")


def test_the_frame_is_that_of_analyses() -> None:
    frame = _some().frame()
    assert list(frame["target"]) == ["sm_75", "sm_80", "sm_90"] or set(frame["outcome"]) == {
        "built",
        "rejected at compile",
        "missing",
    }
    assert frame.set_index("target").loc["sm_80", "registers"] == 40


def test_the_matrix_as_text_and_in_a_notebook() -> None:
    results = _some()
    assert "cupy-nvrtc 13.6.0 cuda 12.4  F  ✓" in str(results)
    html = results._repr_html_()
    assert "3 cells: ✓ 1 built, F 1 not as expected, ? 1 missing" in html
    assert 'title="sm_75: not as expected: device code does not support exception handling"' in html


def test_what_others_said_is_text_in_a_notebook() -> None:
    bad = record(cell(case=f"{HOSTILE}/x"), rejected(HOSTILE))
    shown = [
        cumatrix.Results([bad])._repr_html_(),
        cumatrix.Cell(bad)._repr_html_(),
        cumatrix.explain(f"a.cu(1): error: {HOSTILE}")._repr_html_(),
    ]
    for html in shown:
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        assert "\x1b" not in html
        assert "\u202e" not in html


def test_records_are_written_read_and_made_a_page(tmp_path: Path) -> None:
    path = cumatrix.Results([*_some().records]).write(tmp_path / "a" / "some.jsonl")
    again = cumatrix.read(path)
    assert {each.id: each for each in again} == {each.id: each for each in _some()}
    summary = again.report(tmp_path / "html", cases=tmp_path / "none")
    assert (summary.out / "index.html").is_file()
    assert summary.not_as_expected == 1
    with pytest.raises(cumatrix.NothingToRun, match="no records"):
        cumatrix.Results([]).write(path)
    path.write_text("{}\n")
    with pytest.raises(cumatrix.RecordError, match=r"some\.jsonl: line 1"):
        cumatrix.read(path)


def test_planned_cells_that_never_arrived_are_missing(tmp_path: Path) -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90")]
    with RecordWriter(tmp_path / "cut.jsonl", plan(*cells)) as writer:
        writer.append(record(cells[0], built("sm_80")))
    results = cumatrix.read(tmp_path)
    assert [each["target"] for each in results.missing] == ["sm_90"]
    assert not results.as_expected


def test_causes_are_explained(tmp_path: Path) -> None:
    said = 'kernel.cu(3): error: device code does not support exception handling\n\n1 error detected in the compilation of "kernel.cu".\n'
    found = cumatrix.explain(said)
    assert found
    assert found.causes[0].name == "exception-handling"
    assert "Remedy: " in str(found)
    (tmp_path / "log").write_text(said)
    assert cumatrix.explain(tmp_path / "log") == found
    assert cumatrix.explain(_some()[1]).causes[0].name == found.causes[0].name
    unknown = cumatrix.explain("kernel.cu(3): error: the moon is full\n")
    assert not unknown
    assert "the moon is full" in unknown.unexplained
    with pytest.raises(cumatrix.UsageError, match="cannot be read"):
        cumatrix.explain(tmp_path / "none")
