"""The published schemas equal those of the code, and validate the written files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from record_builders import built, cell, plan, record, rejected

from harness.analysis import cells_frame as frame
from harness.model import Outcome, Status
from harness.records import RecordError, merge
from harness.records.make import with_tables
from harness.records.schema import check_record, record_schema
from harness.report.case import page_names
from harness.report.exports import matrix_json, matrix_schema, schemas

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize("name", schemas())
def test_published_as_the_code_has_it(name: str) -> None:
    assert (PUBLISHED / name).read_bytes() == schemas()[name], "run python -m harness.report.exports"
    jsonschema.Draft202012Validator.check_schema(json.loads(schemas()[name]))


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    page = (PUBLISHED.parent / "records.md").read_text()
    assert "| `artifact.kernels[].num_regs` |" in page
    assert with_tables(page) == page, "run python -m harness.report.exports"


CRASH = Outcome(status=Status.CRASHED, signal=11)
UNSUPPORTED = Outcome(status=Status.UNSUPPORTED, reason="no such architecture")


@pytest.mark.parametrize("outcome", [built(), rejected(), CRASH, UNSUPPORTED])
def test_records_are_valid(outcome: Outcome) -> None:
    jsonschema.validate(record(None, outcome), record_schema())


@pytest.mark.parametrize(
    "change",
    [
        {"cell": ""}, {"status": "fine"}, {"stage": 3}, {"target": "sm80"}, {"target": "sm_80x"}, {"seconds": -1}, {"seconds": "1"},
        {"stages": ["compile", "x"]}, {"diagnostics": [{"severity": "error"}]}, {"artifact": {"format": "cubin"}}, {"cached": 1},
        {"expected": {}}, {"signal": 1.5}, {"command": "x"}, {"toolchain": {}},
    ],
)  # fmt: skip
def test_schema_and_check_refuse_the_same(change: dict[str, Any]) -> None:
    bad = {**record(), **change}
    with pytest.raises(RecordError):
        check_record(bad)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, record_schema())


def test_every_key_is_required_as_the_check_has_it() -> None:
    for key in record_schema()["required"]:
        short = {name: value for name, value in record().items() if name != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(short, record_schema())
    jsonschema.validate({**record(), "a_new_key": 1}, record_schema())


def test_keys_of_a_merged_record_are_held_to_the_schema_too() -> None:
    other = {"run": "r", "status": "built", "stage": "link", "reason": "", "diagnostic": ""}
    jsonschema.validate({**record(), "others": [other]}, record_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**record(), "others": [{**other, "status": "fine"}]}, record_schema())


def test_matrix_json_is_valid() -> None:
    cells = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90", "sm_100")]
    records = [record(cells[0], rejected()), record(cells[1]), record(cells[2], CRASH), record(cells[2], run="run-0")]
    merged = merge(records, [plan(*cells), plan(cells[2], run="run-0", day=2)])
    table = frame(merged)
    value = json.loads(matrix_json(merged, table, page_names(table["case"]), ["careful"]))
    assert value["conflicts"]
    assert value["missing"]
    jsonschema.validate(value, matrix_schema())
    value["cells"][0]["mark"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(value, matrix_schema())
