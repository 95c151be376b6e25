"""Numbers of launches: a part of Python's expressions, and no other syntax."""

from __future__ import annotations

import pytest

from harness.model.expression import Expression, ExpressionError

KNOWN = {"BYTES": 49156, "N": 7, "TYPE": "float"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (3, 3),
        (0.5, 0.5),
        ("BYTES // 4", 12289),
        ("2 * (N + 1)", 16),
        ("-N", -7),
        ("min(N, 4) + max(1, N % 4)", 7),
        ("N / 2", 3.5),
    ],
)
def test_expressions_have_values(text: object, value: float) -> None:
    assert Expression.parse(text, KNOWN)(KNOWN) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "N +", "BYTE // 4", "__import__('os').system('true')", "N.real", "[N][0]", "N if N else 1", "lambda: 1", "'a' * N",
        "N ** 99", "abs(N)", "min()", "min(N, key=N)", "max(*[N])", True, None, [1], "1" * 500, "(" * 150 + "N" + ")" * 150,
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(ExpressionError):
        Expression.parse(text, KNOWN)(KNOWN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("N // 0", "'N // 0' has no value: "),
        ("N % 0", "'N % 0' has no value: "),
        ("TYPE + 1", "TYPE is 'float' here, not a number"),
        ("NONE + 1", "NONE is None here, not a number"),
        ("LIST + 1", "LIST is a list here, not a number"),
        (str(2**64), f"'{2**64}' is too large"),
        (f"-{2**64}", f"'-{2**64}' is too large"),
    ],
)
def test_what_has_no_value_is_told(text: str, words: str) -> None:
    definitions = {**KNOWN, "NONE": None, "LIST": [1]}
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(text, definitions)(definitions)
    assert str(caught.value).startswith(words)


def test_limits() -> None:
    assert Expression.parse(str(2**64 - 1), ())({}) == 2**64 - 1
    assert Expression.parse("FLAG + 1", ["FLAG"])({"FLAG": True}) == 2
    assert Expression.parse("1" + "+1" * 99 + "0", ()).text.endswith("+10")
    with pytest.raises(ExpressionError, match="an expression may have 200 characters, this one has 201"):
        Expression.parse("1" + "+1" * 100, ())
    assert Expression.parse("-" * 118 + "N", KNOWN)(KNOWN) == 7
    with pytest.raises(ExpressionError, match="an expression may be nested 120 levels deep"):
        Expression.parse("-" * 119 + "N", KNOWN)


def test_what_is_written_alike_is_equal() -> None:
    assert Expression.parse("N // 2", KNOWN) == Expression.parse(" N // 2", KNOWN)
    assert Expression.parse("N // 2 + BYTES", KNOWN).names == {"N", "BYTES"}


def test_help_takes_the_place_of_pythons_own_words() -> None:
    with pytest.raises(ExpressionError, match=r"cannot read the expression 'N \+': use numbers, definitions"):
        Expression.parse("N +", KNOWN)
    with pytest.raises(ExpressionError, match="True is not a number".replace("True", "'True'")):
        Expression.parse("N + True", KNOWN)


def test_a_misspelt_definition_gets_a_suggestion() -> None:
    with pytest.raises(ExpressionError, match="BYTES"):
        Expression.parse("BYTE", KNOWN)


@pytest.mark.parametrize("value", [True, None, [1]])
def test_a_value_of_another_type_is_named(value: object) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression.parse(value, KNOWN)
    assert str(caught.value) == f"must be a number or an expression such as 'BYTES // 4', not {value!r}"
