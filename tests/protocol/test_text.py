"""Text of compilers and programs, made harmless."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.diagnostics import clean, no_command, one_line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\nin lines", "plain\ttext\nin lines"),
        ("\x1b[1m\x1b[31merror\x1b[0m: no", "error: no"),
        ("\x1b]0;new title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b[38;2;255;0;0mred", "red"),
        ("\x1bcreset", "�creset"),
        ("a\r\nb", "a\nb"),
        ("hidden\rshown", "hidden�shown"),
        ("over\x08\x08strike", "over��strike"),
        ("\x00\x07\x7f\x9b31m", "����31m"),
        ("left\N{RIGHT-TO-LEFT OVERRIDE}tfel\N{POP DIRECTIONAL FORMATTING}", "left�tfel�"),
        ("\N{LEFT-TO-RIGHT ISOLATE}x\N{POP DIRECTIONAL ISOLATE}", "�x�"),
        ("zero\N{ZERO WIDTH SPACE}width", "zero�width"),
        ("line\N{LINE SEPARATOR}break", "line�break"),
        ("\N{ZERO WIDTH NO-BREAK SPACE}bom", "�bom"),
        ("lone \udcff surrogate", "lone ? surrogate"),
        ("größer als 0 → 日本語", "größer als 0 → 日本語"),
    ],
)  # fmt: skip
def test_what_is_left(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.text(st.characters(), max_size=200))
def test_nothing_harmful_is_left_of_any_text(text: str) -> None:
    left = clean(text)
    left.encode("utf-8")
    json.dumps(left)
    assert not [c for c in left if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert not [
        c
        for c in left
        if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    ]
    assert clean(left) == left


@given(st.binary(max_size=300))
def test_any_bytes_make_one_line(data: bytes) -> None:
    line = one_line(data.decode("utf-8", "replace"))
    assert "\n" not in line
    assert len(line) <= 500


def test_a_long_line_is_cut() -> None:
    assert one_line("x" * 1000, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("::error::x", ": :error::x"),
        ("a\n \t::error::x\n::", "a\n \t: :error::x\n: :"),
        ("\u2003\xa0::error::x", "\u2003\xa0: :error::x"),
        ("\x1b[1m::error::x\x1b[0m", "\x1b[1m: :error::x\x1b[0m"),
        ("\x1b[31m \x1b[0m ::error::x", "\x1b[31m \x1b[0m : :error::x"),
        ("k.cu: ##[error]x ###[group]", "k.cu: # #[error]x ## #[group]"),
        ("##vso[task.complete] ##teamcity[message]", "# #vso[task.complete] # #teamcity[message]"),
        ("a::b ::c :d", "a::b ::c :d"),
        ("# heading ## and #[x]", "# heading ## and #[x]"),
    ],
)
def test_no_line_is_a_command_to_a_ci(text: str, expected: str) -> None:
    assert no_command(text) == expected


def test_looking_for_commands_takes_linear_time() -> None:
    """With another implementation, each of these takes hours, and pytest-timeout ends the test."""
    for part in ("\n", " ", "\x1b[1m", "#", ":\n", " \n"):
        no_command(part * 2_000_000)
