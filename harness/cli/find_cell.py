"""The one cell that a user means: by its id, or by what no other id has; and the records that it is looked for in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.cli.options import RESULTS
from harness.cli.terminal import say
from harness.errors import UsageError
from harness.records import Record, merge, read_records
from harness.records.record_names import choose

_SHOWN = 4
_OF_PROJECT = re.compile(r"^([^\s\[@]+)@[^\s\[]+")


def cells_in(results: Sequence[Path], where: str | None = None) -> dict[str, Record]:
    """Records by the id of their cell, of several runs as one; problems of the files go to stderr.

    Parameters
    ----------
    results : sequence of Path
        Files of records, ``results.parquet`` too, or folders of records; `RESULTS` where there are none.
    where : str, optional
        A condition that they must hold.
    """
    if any(path.suffix == ".parquet" for path in results):
        # pyarrow is there with a report's libraries only.
        from harness.report.inputs import read_results

        read = read_results(results)
    else:
        read = read_records(results or [RESULTS])
    for warning in read.incomplete:
        say(f"cumatrix: {warning}", err=True)
    merged = merge(read.records, read.plans)
    if where:
        merged = choose(replace(merged, missing=()), where)
    return {record["cell"]: record for record in merged.records}


def one_cell(what: str, ids: Sequence[str], *, who: str = "no cell") -> str:
    """Find an id by `what`: the id, a part of it, a pattern (``*`` matches anything), or all of its words.

    Parameters
    ----------
    what : str
        As the user wrote it; the empty text is a part of every id.
    ids : sequence of str
        Ids of the cells that are there.
    who : str
        How the sentence begins that says that none is meant.

    Raises
    ------
    UsageError
        When none or several are meant.
    """
    words = what.split()
    # A run calls its cells without the name of the project, which ids have where several runs are read.
    plain = {each: _OF_PROJECT.sub(r"\1", each) for each in ids}
    found = (
        [each for each in ids if what in (each, plain[each])]
        or [each for each in ids if what in each or what in plain[each]]
        or [each for each in ids if "*" in what and any(map(_like(what).search, (each, plain[each])))]
        or [each for each in ids if all(word in each for word in words)]
    )
    if len(found) == 1:
        return found[0]
    if not found:
        like = f"; ids look like {ids[0]}" if ids else ""
        raise UsageError(f"{who} of {len(ids)} has {what!r} in its id{like}")
    several = f"{len(found)} cells have {what!r} in their ids" if what else f"there are {len(found)} such cells"
    more = "; …" if len(found) > _SHOWN else ""
    raise UsageError(f"{several}, say more, as with --where: {'; '.join(found[:_SHOWN])}{more}")


def _like(pattern: str) -> re.Pattern[str]:
    # Brackets are a variant's, not a pattern's. No star takes in what a later one could.
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return re.compile(".*?".join(parts), re.DOTALL)
