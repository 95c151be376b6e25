"""Lines of keys."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases.toml import Positions

TEXT = '''\
# [not.a.table]
title = """
[expect]
status = 1
"""  # "quoted"
"quoted key" = 'x'
a.b = 1
list = [ # a comment with ] and "
  1,
  { x = "]" },
]
[table."with.dot"]
key = {a = 1, b = [
  2]}
[[expect]]
status = 1
[[expect]]

  status   =   "}"
[expect.inner]
deep = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("quoted key",), 6),
        (("a", "b"), 7),
        (("list", 1, "x"), 8),
        (("table", "with.dot"), 12),
        (("table", "with.dot", "key", "b"), 13),
        (("expect", 0), 15),
        (("expect", 0, "status"), 16),
        (("expect", 1), 17),
        (("expect", 1, "status"), 19),
        (("expect", 1, "nothing"), 17),
        (("expect", 1, "inner", "deep"), 21),
        (("nothing",), 1),
    ],
)
def test_lines(path: tuple[str | int, ...], line: int) -> None:
    tomllib.loads(TEXT)
    assert Positions(TEXT).line(path) == line


@given(st.text(alphabet="ab=.[]{}\"'#\\\n ,1", max_size=60))
def test_any_text_is_survived(text: str) -> None:
    assert Positions(text).line(("a", 0, "b")) >= 1


@given(
    st.dictionaries(
        st.text(alphabet="abc", min_size=1, max_size=3),
        st.sampled_from(['"x"', "'#'", '"""\n\n"""', "'''\n]'''", "[\n1, # ]\n]", "{ z = '}' }", '"\\""', "1"]),
        min_size=1,
    )
)
def test_keys_after_any_value_are_found(entries: dict[str, str]) -> None:
    lines, text = {}, ""
    for key, value in entries.items():
        lines[key] = text.count("\n") + 1
        text += f"{key} = {value}\n"
    tomllib.loads(text)
    assert {key: Positions(text).line((key,)) for key in entries} == lines
