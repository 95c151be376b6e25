"""Results of releases, generated from records that look like those of real cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import record_builders as make

from harness.bisection.search import Lane, LaneOutcome, Search, outcome_of
from harness.model import Expectation, Outcome, Stage, Status
from harness.model.condition import Condition

NO = make.rejected()
OTHER_WORDS = make.rejected("something else is wrong", stage=Stage.ASSEMBLE)
YES = make.built()
UNKNOWN = Outcome(status=Status.UNSUPPORTED, reason="CUDA 12.4 knows no sm_100 (ptxas --help)")
GONE = Outcome(status=Status.UNAVAILABLE, reason="there is no wheel")
REFUSED = Expectation(when=Condition.always(), status=Status.REJECTED)
FAULT = Expectation(when=Condition.always(), status=Status.REJECTED, xfail=True)


def history(
    outcomes: Mapping[str, Sequence[Outcome]], expected: Expectation = make.BUILT
) -> tuple[Search[Lane], dict[tuple[int, Lane], LaneOutcome]]:
    """Return a search that has tried every release, with the given outcome of each target."""
    count = max(map(len, outcomes.values()))
    search = Search[Lane]([f"1.{minor}" for minor in range(count)], every=True)
    seen: dict[tuple[int, Lane], LaneOutcome] = {}
    for place in range(count):
        found: dict[Lane, LaneOutcome | None] = {}
        for target, each in outcomes.items():
            record = make.record(make.cell(library=f"1.{place}", target=target), each[place], expected)
            found[Lane.of(record, "library")] = outcome_of(record)
        search.add(place, {lane: one and one.key for lane, one in found.items()})
        seen |= {(place, lane): one for lane, one in found.items() if one}
    return search, seen
