"""Reading results for answers: a few columns of Parquet, or the lines of records; without pandas, within a moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.answers.cells import COLUMNS, Known, Row, make_row
from harness.answers.features import features_of
from harness.answers.hosts import own_of
from harness.answers.verdict import UNAVAILABLE, UNTRIED
from harness.errors import PartUnavailable
from harness.matrix.axes import FURTHER
from harness.records import Record, merge, read_records
from harness.records.errors import RecordError

loads = lru_cache(maxsize=None)(json.loads)
"""JSON that many records share: treat it as immutable."""

_FACTS = ("case", "title", "topic", "features_json", "links_json", "expected_json")


def read_known(paths: Sequence[Path]) -> Known:
    """Cells of results: ``results.parquet`` files, ``.jsonl`` files and folders of these; a later one counts more.

    Raises
    ------
    RecordError
        When one cannot be read.
    PartUnavailable
        When Parquet cannot be read for want of pyarrow.
    """
    return _known([_parquet(path) if path.suffix == ".parquet" else _lines(path) for path in paths])


def known_of(records: Iterable[Record]) -> Known:
    """Cells of records that are at hand, one a cell."""
    return _known([_records(records, ())])


def _known(parts: Iterable[_Part]) -> Known:
    rows: dict[str, Row] = {}
    facts: dict[tuple[Any, ...], None] = {}
    runs: dict[str, str] = {}
    hosts: set[str] = set()
    for found, told, started, own in parts:
        for row in found:
            # An answer is never hidden behind a run that had none.
            if row.cell not in rows or row.letter not in (UNTRIED, UNAVAILABLE):
                rows[row.cell] = row
        facts.update(dict.fromkeys(told))
        runs |= started
        hosts |= own
    features = features_of((*fact[:3], *(loads(text) for text in fact[3:])) for fact in facts)
    return Known(rows=list(rows.values()), features=features, runs=runs, hosts=tuple(sorted(hosts)))


_Part = tuple[Iterable[Row], Iterable[tuple[Any, ...]], Mapping[str, str], set[str]]


def _parquet(path: Path) -> _Part:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise PartUnavailable(f"{path}: reading Parquet needs pyarrow: pip install 'cumatrix[report]'") from None
    wanted = list(dict.fromkeys((*COLUMNS, "reason", *_FACTS, "toolchain_json")))
    try:
        # Not read_table, which loads pandas where it is installed: that takes longer than the answer.
        # Later axes have no column of their own: they are in the last one, and missing from files of earlier versions.
        wanted = [name for name in wanted if name not in FURTHER]
        further = ["more_json"] if "more_json" in pq.read_schema(path).names else []
        with pq.ParquetFile(path, read_dictionary=[*wanted, *further]) as file:
            table = file.read(columns=[*wanted, *further])
        columns = {name: _values(table.column(name)) for name in wanted}
        more = _values(table.column("more_json")) if further else [None] * len(table)
        columns |= {
            name: [loads(text).get(name, "") if text and name in text else "" for text in more] for name in FURTHER
        }
        runs = _runs(json.loads((table.schema.metadata or {}).get(b"cumatrix.plans", b"[]")))
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        why = (str(error).splitlines() or ["damaged"])[0]
        raise RecordError(f"{path}: this is not a file of cumatrix's results: {why}") from None
    columns["message"] = [
        message or reason for message, reason in zip(columns["message"], columns["reason"], strict=True)
    ]
    rows = [make_row(*values) for values in zip(*(columns[name] for name in COLUMNS), strict=True)]
    asked = dict.fromkeys(zip(columns["backend"], columns["host_compiler"], columns["toolchain_json"], strict=True))
    hosts = {own_of(backend, name, loads(text)) for backend, name, text in asked}
    return rows, dict.fromkeys(zip(*(columns[name] for name in _FACTS), strict=True)), runs, hosts - {""}


def _values(column: Any) -> list[Any]:
    """Values of a column; each different one is made once."""
    found: list[Any] = []
    for chunk in column.chunks:
        if not hasattr(chunk, "dictionary"):
            found += chunk.to_pylist()
            continue
        values = [*chunk.dictionary.to_pylist(), None]
        # Not fill_null, which loads pandas where it is installed.
        found += [values[-1 if place is None else place] for place in chunk.indices.to_pylist()]
    return found


def _lines(path: Path) -> _Part:
    results = read_records([path])
    merged = merge(results.records, results.plans)
    return _records(merged.records, merged.plans)


def _records(records: Iterable[Record], plans: Iterable[Mapping[str, Any]]) -> _Part:
    from harness.matrix.kinds import kind_of

    rows: list[Row] = []
    facts: dict[tuple[Any, ...], None] = {}
    hosts: set[str] = set()
    for record in records:
        message = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"]
        place: Mapping[str, Any] = record
        rows.append(
            make_row(*(place.get(name, "") for name in COLUMNS[:-3]), kind_of(record).key, record["status"], message)
        )
        hosts.add(own_of(record["backend"], record.get("host_compiler", ""), record["toolchain"]))
        nested = (json.dumps(place[name]) for name in ("features", "links", "expected"))
        facts[record["case"], record["title"], record["topic"], *nested] = None
    return rows, facts, _runs(plans), hosts - {""}


def _runs(plans: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {str(plan.get("run", "")): str(plan.get("started") or "") for plan in plans}
