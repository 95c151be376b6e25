"""Inputs of outcomes, stored next to records: written, read, merged, and rejected if damaged."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from harness.records import RecordError
from harness.records.plan import Inputs, inputs_path, read_inputs

ANSWER, OTHER, FIRST, SET, WORKER, LOADED, ASKED = (letter * 64 for letter in "abcdef0")


def inputs(answer: str = ANSWER, path: str = "$HERE/kernel.cu") -> Inputs:
    """Return the inputs of a record that read a program and a listed folder."""
    return Inputs(
        sets={SET: ((path, False), ("/usr/include", True)), LOADED: (("/usr/lib/libc.so.6", False),)},
        states={path: "f:1", "/usr/include/": "d:2", "/usr/lib/libc.so.6": "f:3"},
        workers={WORKER: (ASKED, LOADED, {"targets": ["sm_80"]})},
        answers={answer: (FIRST, SET, WORKER)},
    )


def test_what_is_written_is_read_again() -> None:
    assert Inputs.from_json(inputs().to_json(), "x") == inputs()
    assert Inputs.unpacked(inputs().packed(), "x") == inputs()


def test_of_some_records_only_what_belongs_to_them_is_left() -> None:
    both = inputs() | Inputs(answers={OTHER: (FIRST, "1" * 64, WORKER)}, sets={"1" * 64: (("/gone", False),)})
    assert both.of({ANSWER}) == inputs()
    assert not both.of({"no such"})


def test_each_file_of_records_has_its_own_and_several_come_to_one(tmp_path: Path) -> None:
    for name, one in (("a", inputs()), ("b", inputs(OTHER))):
        inputs_path(tmp_path / f"{name}.jsonl").write_bytes(one.to_json())
    found = read_inputs([tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "none.jsonl"])
    assert set(found.answers) == {ANSWER, OTHER}


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(inputs().to_json()), **fields}).encode()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "Expecting value"),
        (b"[]", "not an input manifest"),
        (b"[" * 100_000, "not an input manifest"),
        (changed(schema=2), "update cumatrix"),
        (changed(files=[["kernel.cu", 0, ""]]), "not absolute"),
        (changed(files=[["/a\0b", 0, ""]]), "the name of a file is invalid"),
        (changed(files=[["/a", 0, "x" * 300]]), "not a short text"),
        (changed(sets={SET: [99]}), "out of range"),
        (changed(sets={SET: [-1]}), "not in the list"),
        (changed(sets={"../../x": []}), "not a hash"),
        (changed(workers={WORKER: [ASKED, LOADED, []]}), "not a table"),
        (changed(answers={ANSWER: [FIRST]}), "not an input manifest"),
    ],
    ids=lambda value: str(value)[-24:] if isinstance(value, bytes) else "",
)
def test_damaged_lists_are_refused_with_one_sentence(data: bytes, why: str) -> None:
    with pytest.raises(RecordError) as refused:
        Inputs.from_json(data, "x.inputs.json")
    assert str(refused.value).startswith("x.inputs.json: ")
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_list_that_unpacks_without_an_end_is_refused() -> None:
    bomb = zlib.compressobj()
    packed = b"".join(bomb.compress(bytes(1 << 24)) for _ in range(33)) + bomb.flush()
    with pytest.raises(RecordError, match="more than 512 MiB"):
        Inputs.unpacked(packed, "results.parquet")
    with pytest.raises(RecordError, match="damaged"):
        Inputs.unpacked(b"no zlib", "results.parquet")
