"""History: appending runs, reading during a write, and its statements."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_builders import night
from record_builders import built, cell, plan, record, rejected

from harness.analysis.diff import changes
from harness.analysis.history import FILE, HistoryError, append, read_history


def test_what_was_written_is_read(tmp_path: Path) -> None:
    night(tmp_path, 2, built("sm_75"), rejected())
    night(tmp_path, 1, built("sm_75"), commit="abc")
    history = read_history(tmp_path)
    assert history.runs == ("run-1", "run-2")
    assert history.warnings == ()
    table = history.table
    assert list(table["outcome"]) == ["built", "missing", "missing", "built", "rejected at compile", "missing"]
    first = table.iloc[0]
    assert (first["registers"], first["commit"], first["started"]) == (40, "abc", "2026-01-01T12:00:00.000+00:00")
    assert json.loads(first["machine"])["cpu"] == "A CPU"
    assert pd.isna(table.iloc[1]["seconds"])


def test_pandas_reads_it_by_itself(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"))
    night(tmp_path, 2, built("sm_75"), run="../odd name=1")
    table = pd.read_parquet(tmp_path)
    assert len(table) == 6
    assert set(table["run"]) == {"run-1", "../odd name=1"}
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("run=")] == []


def test_a_run_that_is_there_is_replaced(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"))
    night(tmp_path, 1, built("sm_75"), built("sm_80"))
    assert list(read_history(tmp_path).table["outcome"]) == ["built", "built", "missing"]


def test_partial_and_foreign_files_are_passed_over(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"))
    (tmp_path / "run=cut").mkdir()
    (tmp_path / "run=cut" / FILE).write_bytes((tmp_path / "run=run-1" / FILE).read_bytes()[:500])
    (tmp_path / "run=run-1" / f".{FILE}.abc").write_bytes(b"half")
    (tmp_path / "run=other").mkdir()
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "run=other" / FILE)
    history = read_history(tmp_path)
    assert history.runs == ("run-1",)
    assert len(history.warnings) == 2


def test_a_run_with_two_beginnings_is_read(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"), built("sm_80"))
    file = tmp_path / "run=run-1" / FILE
    table = pq.read_table(file, partitioning=None)
    begun = pa.array(
        ["2026-01-03T12:00:00.000+00:00", *table["started"].to_pylist()[1:]], table.schema.field("started").type
    )
    pq.write_table(
        table.set_column(table.schema.get_field_index("started"), table.schema.field("started"), begun), file
    )
    assert read_history(tmp_path).runs == ("run-1",)


def test_read_while_written(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"))
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            night(tmp_path, 1, built("sm_75"))
            night(tmp_path, 2, built("sm_75"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            history = read_history(tmp_path)
            assert history.warnings == ()
            assert set(history.table.groupby("run").size()) == {3}
    finally:
        stop.set()
        writer.join()


def test_bad_places(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="there is no history"):
        read_history(tmp_path / "nowhere")
    assert read_history(tmp_path).runs == ()
    night(tmp_path, 1, built("sm_75"))
    with pytest.raises(HistoryError, match="no run of the history called 'x'; there are run-1"):
        read_history(tmp_path).find("x")
    with pytest.raises(HistoryError, match="called 'previous'"):
        read_history(tmp_path).find("previous")


def test_runs_by_name(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        night(tmp_path, day, built("sm_75"), run=f"{day}a{day}")
    history = read_history(tmp_path)
    assert [history.find(name) for name in ("latest", "previous", "1a", "2a2")] == ["3a3", "2a2", "1a1", "2a2"]
    assert changes(history.cells_of("previous"), history.cells_of("latest")).items == ()


def test_the_previous_run_is_of_the_same_environment(tmp_path: Path) -> None:
    night(tmp_path, 1, built(), run="mine")
    other = cell(environment="other")
    append(tmp_path, [record(other, run="theirs")], [plan(other, run="theirs", day=2)])
    night(tmp_path, 3, built(), run="mine-too")
    history = read_history(tmp_path)
    assert (history.find("latest"), history.find("previous")) == ("mine-too", "mine")


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    night(tmp_path, 1, built("sm_75"))
    assert set(read_history(tmp_path, ["mark"]).table) == {"cell", "mark", "run", "started"}
