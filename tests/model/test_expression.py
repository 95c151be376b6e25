"""Numbers of launches: a part of Python's expressions, and nothing else."""

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


@pytest.mark.parametrize("text", ["N // 0", "N % 0", "TYPE + 1"])
def test_what_has_no_value_is_told(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression.parse(text, KNOWN)(KNOWN)


def test_a_misspelt_definition_gets_a_suggestion() -> None:
    with pytest.raises(ExpressionError, match="BYTES"):
        Expression.parse("BYTE", KNOWN)
