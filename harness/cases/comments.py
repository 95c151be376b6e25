"""Expectations in a program's comments, for files without a case.toml.

As in lit's tests (https://llvm.org/docs/CommandGuide/lit.html), a comment that begins a line says them::

    // cumatrix: expect rejected "incomplete type" when cc < "8.0"
    // cumatrix: expect rejected at assemble when target == "sm_90"
    // cumatrix: xfail crashed "internal error" when toolkit < "12.4"
    // cumatrix: unsupported "needs tensor cores" when cc < "7.0"

The first that applies counts, as in a case file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.errors import Report
from harness.cases.keys import EXPECTED
from harness.errors import did_you_mean
from harness.model.case import Expectation, UnsupportedRule
from harness.model.condition import Condition, ConditionError
from harness.model.enums import Stage, Status
from harness.patterns import PatternError, pattern

_COMMENT = re.compile(r"^[ \t]*(?://+|#)[ \t]*cumatrix:[ \t]*(.*?)[ \t]*\r?$")
_RULE = re.compile(
    r"""(?P<word>\S+) (?:[ \t]+(?P<status>[a-z_]+))? (?:[ \t]+at[ \t]+(?P<stage>\w+))? (?:[ \t]+"(?P<text>(?:\\.|[^"\\])*)")?
    (?:[ \t]+when[ \t]+(?P<when>.+))?""",
    re.VERBOSE,
)
_WORDS = ("expect", "xfail", "unsupported")
_FORM = 'write: cumatrix: expect rejected "words of the compiler" when cc < "8.0"'
_MOST_LINES = 200_000


def rules_in(
    path: Path, parameters: Mapping[str, Collection[Any]] | None = None
) -> tuple[tuple[Expectation, ...], tuple[UnsupportedRule, ...]]:
    """Expectations and rules of what is not applicable, in the order of the program.

    Parameters
    ----------
    path : Path
        CUDA C++ or Python.
    parameters : Mapping, optional
        Values of parameters that conditions may name.

    Raises
    ------
    CaseError
        With everything that is wrong, each with file and line.
    """
    text = path.read_text("utf-8", "replace")
    report = Report(os.path.relpath(path))
    expectations: list[Expectation] = []
    unsupported: list[UnsupportedRule] = []
    for number, line in enumerate(text.split("\n")[:_MOST_LINES], 1):
        found = _COMMENT.match(line)
        if not found:
            continue
        try:
            rule = _read(found[1], parameters or {}, number)
        except (ValueError, ConditionError, PatternError) as error:
            report.add((), str(error), line=number)
            continue
        if isinstance(rule, Expectation):
            expectations.append(rule)
        else:
            unsupported.append(rule)
    report.close()
    return tuple(expectations), tuple(unsupported)


def _read(text: str, parameters: Mapping[str, Collection[Any]], line: int) -> Expectation | UnsupportedRule:
    """One comment; raises `ValueError` with what is wrong."""
    rule = _RULE.fullmatch(text)
    if not rule or rule["word"] not in _WORDS:
        word = text.split()[0] if text.split() else ""
        hint = did_you_mean(word, _WORDS) if word not in _WORDS else ""
        raise ValueError(f"cannot read this comment of cumatrix's{hint}; {_FORM}")
    when = Condition.parse(rule["when"] or "", parameters, values={"backend": BACKENDS})
    said = re.sub(r'\\(")', r"\1", rule["text"] or "")
    if rule["word"] == "unsupported":
        if rule["status"] or rule["stage"] or not said:
            raise ValueError('write: cumatrix: unsupported "why" when cc < "7.0"')
        return UnsupportedRule(when=when, reason=said, line=line)
    status, stage = rule["status"] or "", rule["stage"]
    if status not in EXPECTED:
        raise ValueError(f"{status or 'nothing'} is no status{did_you_mean(status, EXPECTED)}; {_FORM}")
    if stage and stage not in tuple(Stage):
        raise ValueError(f"{stage} is no stage{did_you_mean(stage, tuple(Stage))}")
    if rule["word"] == "xfail" and status == Status.BUILT:
        raise ValueError("what is expected to be built cannot be expected to fail")
    if said:
        pattern(said)
    return Expectation(
        when=when, status=Status(status), stage=Stage(stage) if stage else None, diagnostic=said or None,
        xfail=rule["word"] == "xfail", line=line,
    )  # fmt: skip
