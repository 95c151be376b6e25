from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.records.record import line_of, read_json


def test_values_are_as_json_has_them() -> None:
    assert read_json('{"a": [1, 2.5, null, true], "é": "😀"}'.encode()) == {"a": [1, 2.5, None, True], "é": "😀"}
    assert read_json(b'"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize("text", [b'{"a\\ud800": ["\\udcff x"]}', b'["\\uDC00\\uD800"]'])
def test_what_is_read_can_be_written(text: bytes) -> None:
    assert "\ufffd" in str(read_json(text)).encode("utf-8").decode()


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_has_a_limit(begin: str, end: str) -> None:
    most = 100 // begin.replace('{"a":', "[").count("[")
    assert read_json((begin * most + "1" + end * most).encode())
    for times in (most + 1, 500, 100_000):
        with pytest.raises(ValueError, match="within each other"):
            read_json((begin * times + "1" + end * times).encode())


def test_many_that_are_not_deep() -> None:
    assert len(read_json(b"[" + b",".join([b'{"a": []}'] * 1000) + b"]")) == 1000


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"[Infinity]", b"\xff", b'"[[[' + b"[" * 200])
def test_anything_else_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_json(text)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), _VALUES, max_size=4))
def test_a_line_holds_what_was_put_into_it(record: dict[str, object]) -> None:
    line = line_of(record)
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert json.loads(line) == record


def test_what_utf8_cannot_hold_is_escaped() -> None:
    assert json.loads(line_of({"log": "caf\udce9", "é": 1 << 70})) == {"log": "caf\udce9", "é": 1 << 70}
    assert "é".encode() in line_of({"é": 1}) and "é".encode() in line_of({"é": "\udce9"})
