"""Evidence of results for a case, and its gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.rejudge import cell_of, outcome_of
from harness.diagnostics import one_line
from harness.errors import UsageError
from harness.model import Case, Cell, Expectation, Outcome, Status, Verdict
from harness.model.judge import expectation_of, judge
from harness.records import Merged, Record, failed_at
from harness.records.programs import is_of

_NO_ANSWER = (Status.UNAVAILABLE, Status.HARNESS_ERROR)


class WrongEvidence(UsageError):
    """Results that cannot be learned from; one sentence names the cells."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A cell, and what became of it.

    Parameters
    ----------
    cell : Cell
        As today's case has it.
    outcome : Outcome
        What of it is judged.
    run : str
        Name of the run that told it.
    """

    cell: Cell
    outcome: Outcome
    run: str

    def as_expected(self, expected: Expectation) -> bool:
        """Return whether an expectation is met: ``pass`` or ``xfail``."""
        return judge(expected, self.outcome) in (Verdict.PASS, Verdict.XFAIL)


@dataclass(frozen=True)
class Evidence:
    """All that results say of a case.

    Parameters
    ----------
    case : Case
        As it is now.
    seen : tuple of Seen
        Cells with an outcome.
    unsupported : tuple of Cell
        Cells that are not applicable and have no expectation.
    stale : int
        Records of variants that the case does not have any more.
    missing : tuple of str
        Ids of planned cells that never arrived.
    """

    case: Case
    seen: tuple[Seen, ...]
    unsupported: tuple[Cell, ...]
    stale: int
    missing: tuple[str, ...]


def evidence_of(case: Case, merged: Merged) -> Evidence:
    """The evidence for a case.

    Raises
    ------
    WrongEvidence
        Where cells have no answer, or two of them.
    RecordError
        When a record lacks a requested value.
    """
    variants = {variant.name: variant for variant in case.variants}
    records = [record for record in merged.records if is_of(record, case) and not record.get("program")]
    known = [record for record in records if record["variant"] in variants]
    _refuse_wrong(case, known, merged)
    seen, unsupported = [], []
    for record in known:
        cell = cell_of(record, case, variants[record["variant"]])
        if record["status"] == Status.UNSUPPORTED:
            unsupported.append(cell)
        else:
            seen.append(Seen(cell, outcome_of(record), record["run"]))
    missing = [each["cell"] for each in merged.missing if is_of(each, case) and each["variant"] in variants]
    return Evidence(case, tuple(seen), tuple(unsupported), len(records) - len(known), tuple(missing))


def _refuse_wrong(case: Case, records: Sequence[Record], merged: Merged) -> None:
    silent = [record for record in records if record["status"] in _NO_ANSWER]
    if silent:
        counts = Counter(record["status"].replace("_", " ") for record in silent)
        which = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        first = silent[0]
        raise WrongEvidence(
            f"{case.name}: {_cells(len(silent))} without an answer ({which}), the first {one_line(first['cell'])}: "
            f"{one_line(first['reason'], 200)}; mend that and run again, or leave them out with --where"
        )
    cells = {record["cell"] for record in records}
    flaky = [conflict for conflict in merged.conflicts if conflict.cell in cells]
    if flaky:
        other = flaky[0].dropped[0]
        raise WrongEvidence(
            f"{case.name}: {_cells(len(flaky))} with two results that differ, the first {one_line(flaky[0].cell)}: "
            f"{failed_at(flaky[0].kept)} in run {one_line(flaky[0].kept['run'], 80)}, {failed_at(other)} in run "
            f"{one_line(other['run'], 80)}; name only the results that hold, or run the cells again with --fresh"
        )


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"


def place_of(case: Case, cell: Cell) -> int | None:
    """Number of the first expectation that applies to a cell, or None."""
    expected = expectation_of(cell)
    return next((place for place, each in enumerate(case.expectations) if each is expected), None)
