"""Regular expressions of users: accepted and rejected ones, and linear time."""

from __future__ import annotations

import pytest

from harness.model import Diagnostic, Expectation, Stage, Status
from harness.model.condition import Condition
from harness.model.judge import matches
from harness.regex import Pattern, PatternError

# A backtracking engine needs practically unlimited time for each.
SLOW = [
    (r"(a+)+$", "a" * 50_000 + "!"),
    (r"^(a|a)*$", "a" * 50_000 + "!"),
    (r"(.*.*.*.*.*)x", "a" * 50_000),
    (r"^(\w+\s?)*$", "word " * 10_000 + "!"),
    (r"(a?){40}a{40}", "a" * 39),
    (r"([a-z]+)*\d", "z" * 50_000),
]


@pytest.mark.parametrize(("text", "said"), SLOW)
def test_no_expression_is_slow(text: str, said: str) -> None:
    """A backtracking engine would not end; pytest-timeout would end it."""
    expected = Expectation(when=Condition.always(), status=Status.REJECTED, diagnostic=text)
    told = [Diagnostic(severity="error", message=said)]
    assert not matches(expected, Status.REJECTED, Stage.COMPILE, told)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a(?=b)", "no lookahead"),
        ("a(?!b)", "no lookahead"),
        ("(?<=a)b", "no lookbehind"),
        ("(?<!a)b", "no lookbehind"),
        (r"(a)\1", "no backreferences"),
        ("(?P<x>a)(?P=x)", "no backreferences"),
        ("(?>a)", "no atomic groups"),
        ("(?x) a", "no verbose mode"),
        (r"a\Z", r"write \z"),
        (r"\u0041", r"write \x{…}"),
        ("a{,3}", "write {0,3}"),
        ("a{1001}", "invalid repetition size"),
        ("a{99999999999}", "at most 1000"),
        ("a{1,99999999999}", "at most 1000"),
        ("a++", "bad repetition"),
        ("(unclosed", "missing )"),
        ("(" * 5000, "…"),
        ("((a{100}){100}){100}", "invalid repetition size"),
    ],
)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    with pytest.raises(PatternError, match="is not a regular expression that RE2 accepts") as caught:
        Pattern(text)
    assert why in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("text", "said", "found"),
    [
        (r"\{,3}", "a{,3}", True),
        (r"(?i)LOWERING", "No definition for lowering", True),
        (r"\w+", "ü", False),
        (r"\pL+", "ü", True),
        (r"end$", "end\n", False),
        (r"a.b", "a\nb", False),
        (r"a", "\ud800a", True),
    ],
)
def test_what_is_found(text: str, said: str, found: bool) -> None:
    assert Pattern(text).found_in(said) is found
