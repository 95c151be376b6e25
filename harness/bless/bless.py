"""Rewriting of a case file's expectations from results."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tomlkit
from tomlkit.items import Item

from harness.bless.evidence import Evidence, evidence_of
from harness.bless.propose import Draft, Proposal, left_open, propose
from harness.cases.load import display, read_case, read_text
from harness.cases.toml import CaseError, Positions, Problem
from harness.errors import CumatrixError
from harness.model import Case
from harness.model.judge import expectation_of
from harness.records import Merged

_KEYS = ("when", "status", "stage", "diagnostic", "xfail", "reason", "link")
_WIDE = 110
_QUOTES = "'''"


@dataclass(frozen=True)
class _Parts:
    """Lines of a file: those of each expectation, with the comment above it, and all others."""

    head: list[str]
    rules: list[list[str]]
    tail: list[str]


def rewrite(text: str, drafts: Sequence[Draft], count: int, file: str) -> str:
    """Return the text of a case file with other expectations.

    Raises
    ------
    CaseError
        If the expectations are not separate ``[[expect]]`` tables.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    parts = _split(text.replace("\r\n", "\n"), count, file)
    blocks = [_block(draft, parts.rules) for draft in drafts]
    pieces = [_stripped(parts.head), *blocks, _stripped(parts.tail)]
    made = "\n\n".join("\n".join(piece) for piece in pieces if piece) + "\n"
    return made.replace("\n", newline)


def _split(text: str, count: int, file: str) -> _Parts:
    positions = Positions(text)
    lines = text.split("\n")
    headers = sorted(positions.headers)
    starts = [line for line in headers if positions.headers[line][:1] == ("expect",)]
    if len(starts) != count:
        line = positions.line(("expect",))
        message = "write [[expect]] tables, one for each expectation: bless changes no others"
        raise CaseError([Problem(file=file, line=line, key="expect", message=message)])
    begins = {line: _with_comment(lines, line) for line in headers}
    head: list[str] = []
    tail: list[str] = []
    rules: list[list[str]] = []
    last = 0
    for place, line in enumerate(headers):
        end = begins[headers[place + 1]] if place + 1 < len(headers) else len(lines)
        if line in starts:
            rules.append(_stripped(lines[begins[line] : end]))
            last = 1
        elif place == 0:
            head += lines[:end]
        else:
            (tail if last else head).extend(lines[begins[line] : end])
    if not headers:
        head = lines
    elif headers[0] in starts:
        head = lines[: begins[headers[0]]]
    return _Parts(head, rules, tail)


def _with_comment(lines: Sequence[str], header: int) -> int:
    """Return the line, counted from 0, at which a table starts.

    Comments above the table belong to it, except those that end the previous table.
    """
    first = header - 1
    while first and (lines[first - 1].startswith("#") or not lines[first - 1].strip()):
        first -= 1
    above = lines[first : header - 1]
    blank = next((place for place, line in enumerate(above) if not line.strip()), None)
    return first if blank is None else first + blank


def _stripped(lines: Sequence[str]) -> list[str]:
    """Strip empty lines at both ends."""
    found = list(lines)
    while found and not found[-1].strip():
        found.pop()
    while found and not found[0].strip():
        found.pop(0)
    return found


def _block(draft: Draft, rules: Sequence[Sequence[str]]) -> list[str]:
    if draft.kept is not None and draft.changes is None:
        return list(rules[draft.kept])
    changes = draft.changes or {}
    if draft.kept is None:
        document = tomlkit.parse("[[expect]]\n")
    else:
        document = tomlkit.parse("\n".join(rules[draft.kept]) + "\n")
    table = document["expect"][0]
    missing = []
    for key in _KEYS:
        if key not in changes:
            continue
        value = changes[key]
        if value is None:
            table.pop(key, None)
        elif key in table:
            table[key] = _item(key, value)
        else:
            missing.append((key, value))
    if not missing:
        return _stripped(tomlkit.dumps(document).split("\n"))
    if draft.kept is None:
        for key, value in missing:
            table.append(key, _item(key, value))
        return _stripped(tomlkit.dumps(document).split("\n"))
    return _with_keys(_stripped(tomlkit.dumps(document).split("\n")), missing)


def _with_keys(lines: list[str], missing: Sequence[tuple[str, object]]) -> list[str]:
    """Insert new keys directly below the header, in their order."""
    at = next(place for place, line in enumerate(lines) if line.lstrip().startswith("[["))
    new = [f"{key} = {_item(key, value).as_string()}" for key, value in missing]
    made = "\n".join([*lines[: at + 1], *new, *lines[at + 1 :]])
    return made.split("\n")


def _item(key: str, value: object) -> Item:
    """Return a value in the style of case files: conditions and expressions in single quotes, long conditions folded."""
    if not isinstance(value, str):
        return tomlkit.item(value)
    if key == "when" and len(value) > _WIDE and _QUOTES not in value:
        return tomlkit.value("\n".join([_QUOTES, *_folded(value), _QUOTES]))
    if key == "when" and "'" not in value:
        return tomlkit.value(f"'{value}'")
    if ('"' in value or "\\" in value) and "'" not in value:
        return tomlkit.value(f"'{value}'")
    if "\\" in value and _QUOTES not in value and not value.endswith("'"):
        return tomlkit.value(f"{_QUOTES}{value}{_QUOTES}")
    return tomlkit.item(value)


def _folded(condition: str) -> list[str]:
    """Break a long condition into lines that begin with ``and`` or ``or`` if possible."""
    lines = [""]
    for part in re.split(r" (?=and |or )", condition):
        if lines[-1] and len(lines[-1]) + len(part) >= _WIDE:
            lines.append(part)
        else:
            lines[-1] += f" {part}" if lines[-1] else part
    return lines


class NotBlessed(CumatrixError):
    """An internal error: the new expectations would fail some cell. Nothing is written."""

    exit_code = 1


@dataclass(frozen=True)
class Blessing:
    """The change of a case file.

    Parameters
    ----------
    path : Path
        Path of the file.
    name : str
        Name in messages.
    before, after : str
        Old and new text.
    proposal : Proposal
        Proposed expectations.
    cells : int
        Number of cells in the evidence.
    open : tuple of str
        Sentences on cells without evidence.
    """

    path: Path
    name: str
    before: str
    after: str
    proposal: Proposal
    cells: int
    open: tuple[str, ...]

    @property
    def diff(self) -> list[str]:
        """Lines of a unified diff; empty without changes."""
        before, after = self.before.splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(before, after, self.name, self.name, lineterm=""))


def bless(path: Path, root: Path, merged: Merged, *, relearn: bool = False) -> Blessing:
    """Compute the new text of a case file from results.

    Parameters
    ----------
    path, root : Path
        The ``case.toml`` and the folder of cases.
    merged : Merged
        The results.
    relearn : bool
        Also learn expectations that are right.

    Raises
    ------
    CaseError
        If the file cannot be read or changed.
    WrongEvidence, RecordError
        If the results are unusable.
    NotBlessed
        If the new expectations fail some cell.
    """
    name = display(path, root)
    text = read_text(path, root)
    case = read_case(text, path, root)
    evidence = evidence_of(case, merged)
    proposal = propose(evidence, days(merged.plans), relearn=relearn)
    open_ = tuple(left_open(evidence, proposal.untried))
    after = text
    if proposal.wrong or relearn:
        after = rewrite(text, proposal.drafts, len(case.expectations), name)
        _check(read_case(after, path, root), evidence)
    return Blessing(path, name, text, after, proposal, len(evidence.observations), open_)


def _check(case: Case, evidence: Evidence) -> None:
    """Check the new expectations against every cell."""
    for each in evidence.observations:
        expected = expectation_of(replace(each.cell, case=case))
        if not each.as_expected(expected):
            raise NotBlessed(
                f"a fault of cumatrix's own: the expectations found for {case.name} are wrong for {each.cell.id} "
                f"(when {expected.when.text or 'always'}: {expected.status}); nothing is written, please report it"
            )


def days(plans: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Return the day of each run: ``2026-11-22``."""
    return {str(plan["run"]): str(plan["started"])[:10] for plan in plans if plan.get("started")}
