"""A plan as a whole against records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.cases.discovery import load_cases
from harness.matrix_plan.coverage import Coverage, cover, seconds_of, statuses_of
from harness.matrix_plan.parts import More, cells_of_part, read_plan
from harness.matrix_plan.proposals import Proposal, propose
from harness.model import Case
from harness.records import Record


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A plan against records.

    Parameters
    ----------
    coverages : sequence of Coverage
        Its parts, in their order.
    cases : sequence of Case
        All cases.
    seconds : Mapping
        Mean seconds of a cell by case and backend.
    new : Mapping
        New releases by library: their commands come first.
    """

    coverages: Sequence[Coverage]
    cases: Sequence[Case]
    seconds: Mapping[tuple[str, str], float]
    new: More

    def next(self, most: int, budget: float | None = None) -> list[Proposal]:
        """The next commands (`harness.matrix_plan.proposals.propose`)."""
        return propose(self.coverages, self.cases, self.seconds, most=most, budget=budget, new=self.new)


def compare(plan: Path, cases: Path, records: Iterable[Record], new: More = MappingProxyType({})) -> Compared:
    """Read a plan and compare its cells with records; `new` are further releases by library.

    Raises
    ------
    CaseError
        When the plan or a case cannot be used.
    """
    records = list(records)
    statuses = statuses_of(records)
    coverages = [
        cover(part, cells_of_part(part, load_cases(cases, part.cases), new), statuses) for part in read_plan(plan)
    ]
    return Compared(coverages=coverages, cases=load_cases(cases), seconds=seconds_of(records), new=new)
