"""Published cells next to own ones: in one matrix, and separated by the name of their environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.rejudge import Rejudge
from harness.published import ENVIRONMENT, RECORDS, Manifest, read_manifest, stale_cases
from harness.records import Conflict, Merged, Record, weight
from harness.records.merge import OTHERS, agreement_key, other_of
from harness.records.parquet import read_parquet


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A published matrix.

    Parameters
    ----------
    manifest : Manifest
        What it was made of.
    merged : Merged
        Its records, with today's verdicts.
    stale : tuple of str
        Cases that are another program now: their cells are of an earlier version.
    """

    manifest: Manifest
    merged: Merged
    stale: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """Notes for the reader."""
        if not self.stale:
            return []
        return [f"published answers of {', '.join(self.stale)} are of an earlier version of the case"]


def read_publication(folder: Path, rejudge: Rejudge | None) -> Publication:
    """Read a published matrix.

    Raises
    ------
    RecordError
        When it is damaged.
    """
    records, plans = read_parquet(folder / RECORDS)
    manifest = read_manifest(folder)
    if rejudge:
        records = list(map(rejudge, records))
    merged = Merged(records=tuple(records), plans=tuple(plans), missing=(), conflicts=())
    return Publication(manifest=manifest, merged=merged, stale=tuple(stale_cases(manifest.cases)))


def is_own(cell: Mapping[str, Any]) -> bool:
    """Return whether a record, or a planned cell, is the report author's own."""
    return bool(cell.get("environment") != ENVIRONMENT)


def own_part(table: pd.DataFrame) -> pd.DataFrame:
    """The report author's own cells; all cells if there are no others."""
    own = table[table["environment"] != ENVIRONMENT]
    return own if len(own) else table


def of_own(merged: Merged) -> Merged | None:
    """The own cells of a set; None without any."""
    records = tuple(record for record in merged.records if is_own(record))
    if not records and not merged.missing:
        return None
    return replace(merged, records=records, plans=tuple(plan for plan in merged.plans if is_own(plan)))


def side_by_side(own: Merged, published: Merged) -> Merged:
    """One's own cells, and those published ones that one has no answer of; where both have one and they differ, one's own says so.

    An answer is never hidden by the lack of one: of a cell that is unavailable to oneself the published answer is shown.
    """
    theirs = {record["cell"]: record for record in published.records}
    planned = {cell["cell"] for cell in own.missing}
    records: dict[str, Record] = {cell: record for cell, record in theirs.items() if cell not in planned}
    conflicts = list(own.conflicts)
    for record in own.records:
        other = theirs.get(record["cell"])
        if other is None or weight(record) >= weight(other):
            records[record["cell"]] = record
        if other is not None and weight(record) == weight(other) == 2 and agreement_key(record) != agreement_key(other):
            kept: Record = {**record, OTHERS: [*record.get(OTHERS, ()), other_of(other)]}
            records[record["cell"]] = kept
            conflicts.append(Conflict(cell=record["cell"], kept=kept, dropped=(other,)))
    return replace(
        own,
        records=tuple(records[cell] for cell in sorted(records)),
        plans=(*published.plans, *own.plans),
        conflicts=tuple(conflicts),
    )
