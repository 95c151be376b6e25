"""The definition of record keys is the only one: the writer of records agrees with it."""

from __future__ import annotations

from dataclasses import fields
from typing import cast

import pytest
from record_builders import artifact_of, record

from harness.model import Artifact, KernelResources
from harness.model import Diagnostic as Message
from harness.records import RecordError
from harness.records.plan import CELL_KEYS
from harness.records.record import Artifact as ArtifactJson
from harness.records.record import Diagnostic, Kernel, Record
from harness.records.schema import FIELDS, Field, check_record, check_value, fields_of


def below(table: type) -> list[Field]:
    found = list(fields_of(table))
    return found + [each for field in found if field.table for each in below(field.table)]


@pytest.mark.parametrize(
    ("model", "table"), [(Message, Diagnostic), (KernelResources, Kernel), (Artifact, ArtifactJson)]
)
def test_what_the_model_writes_has_the_keys_of_the_definition(
    model: type[Message | KernelResources | Artifact], table: type
) -> None:
    assert [field.name for field in fields(model)] == [field.name for field in fields_of(table)]


def test_a_record_that_is_made_has_every_key_that_is_required() -> None:
    made = record()
    assert {name for name, field in FIELDS.items() if field.required} <= made.keys() <= FIELDS.keys()
    expected = FIELDS["expected"].table
    assert expected is not None
    assert made["expected"].keys() == {field.name for field in fields_of(expected) if field.required}


def test_every_key_is_described() -> None:
    assert len(below(Record)) > 60
    assert [field.name for field in below(Record) if not field.description.strip() or "|" in field.description] == []


def test_keys_of_a_plan_are_keys_of_records() -> None:
    assert FIELDS.keys() >= {*CELL_KEYS, "program"}


def test_the_path_to_a_value_is_in_front() -> None:
    made = record()
    artifact_of(made)["kernels"].append(cast("Kernel", {"name": "second", "num_regs": 2.5}))
    with pytest.raises(RecordError) as caught:
        check_record(made)
    assert str(caught.value) == "artifact.kernels[1].num_regs: must be a whole number, not 2.5"
    with pytest.raises(RecordError, match=r"^diagnostics\[0\]\.severity: missing$"):
        check_value("diagnostics", [{"message": "m"}])
    check_value("a key of a later version", object())
    with pytest.raises(RecordError, match=r"^must be a table, not a list$"):
        check_record([])
