"""Expectations inside a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.rules import rules_in
from harness.cases.toml import CaseError
from harness.model import Stage, Status


def _program(tmp_path: Path, text: str) -> Path:
    (tmp_path / "kernel.cu").write_text(text)
    return tmp_path / "kernel.cu"


def test_comments_are_read_in_order_with_their_lines(tmp_path: Path) -> None:
    path = _program(
        tmp_path,
        '// A program.\n// cumatrix: expect rejected at compile "incomplete type" when cc < "8.0"\n'
        '  //  cumatrix: xfail crashed "say \\"no\\"" when backend == "nvcc"\n// cumatrix: expect built\n'
        '// cumatrix: unsupported "needs tensor cores" when cc < "7.0"\nint x; // cumatrix: no comment of ours\n',
    )
    expectations, unsupported = rules_in(path)
    assert [(rule.status, rule.stage, rule.diagnostic, rule.xfail, rule.line) for rule in expectations] == [
        (Status.REJECTED, Stage.COMPILE, "incomplete type", False, 2),
        (Status.CRASHED, None, 'say "no"', True, 3),
        (Status.BUILT, None, None, False, 4),
    ]
    assert [rule.when.text for rule in expectations] == ['cc < "8.0"', 'backend == "nvcc"', ""]
    assert [(rule.reason, rule.line) for rule in unsupported] == [("needs tensor cores", 5)]


def test_python_has_comments_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("# cumatrix: xfail rejected\n")
    assert [rule.xfail for rule in rules_in(tmp_path / "kernel.py")[0]] == [True]


@pytest.mark.parametrize(
    ("comment", "words"),
    [
        ("expcet rejected", 'did you mean "expect"'),
        ("expect", "nothing is no status"),
        ("expect refused", "refused is no status"),
        ("expect rejected at assembly", "assembly is no stage"),
        ("expect rejected incomplete type", "cannot read"),
        ('expect rejected "(" ', "missing"),
        ('expect rejected when cd < "8.0"', "unknown name 'cd'"),
        ("xfail built", "cannot be expected to fail"),
        ('unsupported when cc < "8.0"', 'unsupported "why"'),
        ("", "cannot read"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(tmp_path: Path, comment: str, words: str) -> None:
    with pytest.raises(CaseError) as caught:
        rules_in(_program(tmp_path, f"\n// cumatrix: {comment}\n"))
    assert words in str(caught.value)
    assert "kernel.cu:2: " in str(caught.value)
