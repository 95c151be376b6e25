"""Blessing a case: from its file and the results to the text that the file should have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.bless.edit import rewrite
from harness.bless.evidence import Evidence, evidence_of
from harness.bless.propose import Proposal, propose
from harness.bless.said import left_open
from harness.cases.load import display, read_case, read_text
from harness.errors import CumatrixError
from harness.model import Case
from harness.model.judge import expectation_of
from harness.records import Merged


class NotBlessed(CumatrixError):
    """An internal error: the new expectations would fail some cell. Nothing is written."""

    exit_code = 1


@dataclass(frozen=True)
class Blessing:
    """The change of a case file.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        As messages show it.
    before, after : str
        Its text.
    proposal : Proposal
        Its expectations.
    cells : int
        Of the evidence.
    open : tuple of str
        Cells without evidence.
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
        """Lines of a unified diff; none where nothing changes."""
        before, after = self.before.splitlines(), self.after.splitlines()
        return list(difflib.unified_diff(before, after, self.name, self.name, lineterm=""))


def bless(path: Path, root: Path, merged: Merged, *, anew: bool = False) -> Blessing:
    """Say what a case file should be.

    Parameters
    ----------
    path, root : Path
        The ``case.toml`` and the folder of cases.
    merged : Merged
        The results.
    anew : bool
        Learn expectations that are right as well.

    Raises
    ------
    CaseError
        When the file cannot be read or changed.
    WrongEvidence, RecordError
        When nothing can be learned from the results.
    NotBlessed
        When the new text does not do what it should.
    """
    name = display(path, root)
    text = read_text(path, root)
    case = read_case(text, path, root)
    evidence = evidence_of(case, merged)
    proposal = propose(evidence, days(merged.plans), anew=anew)
    open_ = tuple(left_open(evidence, proposal.untried))
    after = text
    if proposal.wrong or anew:
        after = rewrite(text, proposal.drafts, len(case.expectations), name)
        _check(read_case(after, path, root), evidence)
    return Blessing(path, name, text, after, proposal, len(evidence.seen), open_)


def _check(case: Case, evidence: Evidence) -> None:
    """Hold the new expectations against every cell."""
    for each in evidence.seen:
        expected = expectation_of(replace(each.cell, case=case))
        if not each.as_expected(expected):
            raise NotBlessed(
                f"a fault of cumatrix's own: the expectations found for {case.name} are wrong for {each.cell.id} "
                f"(when {expected.when.text or 'always'}: {expected.status}); nothing is written, please report it"
            )


def days(plans: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Day of each run: ``2026-11-22``."""
    return {str(plan["run"]): str(plan["started"])[:10] for plan in plans if plan.get("started")}
