from __future__ import annotations

import pytest

from harness.records.jsontext import read_json


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
