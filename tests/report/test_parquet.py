"""Records as Parquet: nothing is lost, and other files are rejected."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from record_builders import built, cell, changed, plan, record, rejected

from harness.model import Outcome, Status
from harness.records import Record, RecordError, RecordWriter, merge
from harness.records.parquet import read_parquet, results_parquet
from harness.records.plan import Plan
from harness.report.inputs import read_results


def everything() -> tuple[list[Record], Plan]:
    cells = [cell(target=t) for t in ("sm_75", "sm_80", "sm_90", "sm_100")]
    outcomes = [rejected("ä \u2028 \\ '"), built("sm_80", notes=("a", "b")), Outcome(status=Status.CRASHED, signal=11)]
    records = [record(of, outcome) for of, outcome in zip(cells, outcomes, strict=False)]
    return [*records[:2], changed(records[2], budget={"registers": 255})], plan(*cells)


def test_records_come_back_as_they_were(tmp_path: Path) -> None:
    records, planned = everything()
    path = tmp_path / "results.parquet"
    path.write_bytes(results_parquet(records, [planned]))
    found, plans = read_parquet(path)
    assert found == records
    assert {item["cell"] for item in plans[0]["cells"]} == {item["cell"] for item in planned["cells"]}
    before, after = merge(records, [planned]), merge(found, plans)
    assert after.missing == before.missing
    assert after.records == before.records
    assert {**plans[0], "cells": 0} == {**planned, "cells": 0}


def test_values_that_records_share_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_bytes(results_parquet([record(), record(cell(target="sm_90"))]))
    one, other = read_parquet(path)[0]
    assert one["toolchain"] is other["toolchain"]


def test_columns_are_those_that_readers_know() -> None:
    strings = ("cell case title topic variant backend library target toolkit environment status stage verdict mark reason message "
               "diagnostic_code diagnostic_fingerprint").split()  # fmt: skip
    nested = "features links stages toolchain expected diagnostics artifact device command notes".split()
    table = pq.read_table(io.BytesIO(results_parquet([record()])))
    assert [(field.name, str(field.type)) for field in table.schema] == [
        ("schema", "int32"),
        *((name, "string") for name in strings),
        *(("signal", "int64"), ("seconds", "double"), ("cached", "bool")),
        *((f"artifact_{name}", "string") for name in ("format", "target", "sha256")),
        *((name, "int64") for name in ("artifact_bytes", "max_num_regs", "max_shared_bytes", "max_spill_bytes")),
        *((f"{name}_json", "string") for name in nested),
        *((name, "string") for name in ("log", "fingerprint", "run", "cumatrix", "more_json")),
    ]


def test_numbers_that_are_no_floats_and_no_64_bits_survive(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    big: Record = {**record(), "seconds": 10**12, "peak_bytes": 2**70}
    path.write_bytes(results_parquet([big]))
    (found,) = read_parquet(path)[0]
    assert (found["seconds"], found["peak_bytes"]) == (10**12, 2**70)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "exploded"}, "status: 'exploded' is not one of"),
        ({"target": "sm_x"}, "target: 'sm_x' is not a target"),
        ({"cell": None}, "cell: must be text"),
        ({"toolchain_json": '{"requested": {}}'}, "toolchain.observed: missing"),
        ({"toolchain_json": "{"}, "Expecting"),
        ({"more_json": '{"peak_bytes": "much"}'}, "peak_bytes: must be a whole number, not text"),
        ({"schema": 99}, "schema: the record has version 99"),
    ],
)
def test_damaged_values_are_told(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    table = pq.read_table(io.BytesIO(results_parquet([record()]))).to_pylist()
    path = tmp_path / "results.parquet"
    pq.write_table(pa.Table.from_pylist([{**table[0], **change}]), path)
    with pytest.raises(RecordError, match=r"results\.parquet: ") as caught:
        read_parquet(path)
    assert message in str(caught.value)


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no")
    with pytest.raises(RecordError, match="cannot be read as Parquet"):
        read_parquet(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(RecordError, match="no column schema: this is not a file of cumatrix's results"):
        read_parquet(path)
    with pytest.raises(RecordError, match="no such file"):
        read_results([tmp_path / "gone.parquet"])


def test_folders_hold_either_kind_and_earlier_reports_do_not_count_twice(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "a.jsonl", plan(cell())) as writer:
        writer.append(record())
    data = results_parquet([record(cell(target="sm_90"), run="run-2")], [plan(cell(target="sm_90"), run="run-2")])
    (tmp_path / "b.parquet").write_bytes(data)
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "index.html").write_text("")
    (tmp_path / "html" / "results.parquet").write_bytes(data)
    results = read_results([tmp_path, tmp_path / "b.parquet"])
    assert sorted(item["target"] for item in results.records) == ["sm_80", "sm_90"]
    assert sorted(item["run"] for item in results.plans) == ["run-1", "run-2"]
    assert len(read_results([tmp_path / "html" / "results.parquet"]).records) == 1
    json.dumps(results.records)
