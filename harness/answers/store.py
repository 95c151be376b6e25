"""Results prepared for questions: known names, the cases that match a question, and their cells."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from harness.answers.answer import SHOWN, answer, known_of_itself
from harness.answers.cells import (
    COLUMNS,
    OF_CODE,
    Feature,
    Known,
    Row,
    features_of,
    make_row,
    own_of,
    place_of_fault,
    releases_by_name,
    split_host,
    split_variant,
    text_of_row,
    words_of_feature,
)
from harness.answers.query import Query, QueryResult
from harness.answers.question import Vocabulary, score, words_of, words_of_messages
from harness.answers.replies import Replies
from harness.answers.table import make_vocabulary
from harness.answers.verdict import REFUSED, SILENT, UNAVAILABLE, UNTRIED
from harness.backends import library_of
from harness.errors import needs
from harness.matrix.axes import FURTHER, target_key
from harness.model.cell import cell_id
from harness.records import Record, merge, read_records
from harness.records.record import RecordError

Use = tuple[str, str, str, str]
"""Backend, version of its library, header library or host compiler, and the version of that."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """Results that build only the cells of a question: building many thousand cells takes longer than the answer.

    Parameters
    ----------
    features : Mapping[str, Feature]
        The features by case, in order.
    variants : Mapping[str, sequence of str]
        The parameters of variants that are not libraries, by case.
    uses : Mapping[str, set of Use]
        The tried tools and versions, by case.
    toolkits, targets : sequence of str
        CUDA releases, and targets with a compiler's answer.
    runs : Mapping[str, str]
        The start of each run, by the run's name.
    answered : int
        The number of cells with a compiler's answer.
    rows_of : callable
        Returns the cells of some cases.
    hosts : tuple of str
        Versions of the machines' own host compilers (`harness.answers.cells.Known`).
    message_words : Mapping[str, frozenset of str]
        Words of the compilers' refusals, by case.
    """

    features: Mapping[str, Feature]
    variants: Mapping[str, Sequence[str]]
    uses: Mapping[str, frozenset[Use]]
    toolkits: Sequence[str]
    targets: Sequence[str]
    runs: Mapping[str, str]
    answered: int
    rows_of: Callable[[Iterable[str]], list[Row]]
    hosts: tuple[str, ...] = ()
    message_words: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known) -> Store:
        """Return the store of cells that are already built."""
        variants: dict[str, dict[str, None]] = {}
        uses: dict[str, set[Use]] = {}
        by_case: dict[str, list[Row]] = {}
        for row in known.rows:
            variants.setdefault(row.case, {})[row.rest] = None
            uses.setdefault(row.case, set()).add(use_of(row))
            by_case.setdefault(row.case, []).append(row)
        return cls(
            features=known.features,
            variants={case: tuple(found) for case, found in variants.items()},
            uses={case: frozenset(found) for case, found in uses.items()},
            toolkits=list({row.toolkit: None for row in known.rows if row.toolkit}),
            targets=known.targets,
            runs=known.runs,
            answered=sum(row.letter not in SILENT for row in known.rows),
            rows_of=lambda cases: [row for case in cases for row in by_case.get(case, ())],
            hosts=known.hosts,
            message_words=known.message_words,
        )

    def known(self, cases: Iterable[str]) -> Known:
        """Return the cells of some cases."""
        wanted = set(cases)
        features = {case: feature for case, feature in self.features.items() if case in wanted}
        return Known(rows=self.rows_of(features), features=features, runs=self.runs, hosts=self.hosts)

    def bounds(self, query: Query, vocabulary: Vocabulary) -> dict[str, int]:
        """Return the number of words that no variant of a case has, by case.

        If a case uses one of the named header libraries, only such cases count.
        """
        headers, hosts = query.headers(), query.hosts()
        cases = [case for case in self.features if any(use[2] in headers for use in self.uses.get(case, ()))]
        words = [word for word in query.words if word not in hosts and not (cases and word in headers)]
        in_messages = self.message_words if vocabulary.in_messages(words) else {}
        found = {}
        for case in cases or self.features:
            own = list(dict.fromkeys(word for rest in self.variants.get(case, ()) for word in words_of(rest)))
            found[case], _ = score(
                words, (*words_of_feature(self.features[case]), own), vocabulary, in_messages.get(case, ())
            )
        return found

    def answer(self, query: Query, vocabulary: Vocabulary, most: int = SHOWN) -> QueryResult:
        """Answer a question from the cells of the cases that may match (`harness.answers.answer.answer`)."""
        bounds = self.bounds(query, vocabulary)
        missing = min(bounds.values(), default=0)
        unknown = len(query.unknown)
        while True:
            known = self.known(case for case, count in bounds.items() if count <= missing)
            found = answer(query, known, vocabulary, most)
            # No variant of the case has all the words that the case has: then another case may have more of them.
            if len(found.lacking) - unknown <= missing:
                return found
            missing = len(found.lacking) - unknown

    @cached_property
    def replies(self) -> Replies:
        """Replies to questions without a single feature."""
        known = self.known(self.features)
        return Replies(known, known_of_itself(known), vocabulary_of(self))

    @cached_property
    def releases(self) -> Mapping[str, Sequence[str]]:
        """Releases in the results by name, oldest first."""
        uses = frozenset().union(*self.uses.values())
        return releases_by_name(
            (
                *(("cuda", toolkit) for toolkit in self.toolkits),
                *(pair for backend, library, *axis in uses for pair in ((library_of(backend), library), axis)),
            )
        )


def use_of(row: Row) -> Use:
    """Return the tool and versions of a cell."""
    backend, library, *_ = (*row.tool.split(" "), "")
    return (backend, library, row.axis, row.version) if row.axis else (backend, row.version, "", "")


def vocabulary_of(*stores: Store) -> Vocabulary:
    """Return the vocabulary of questions, with the versions and words in the results."""
    features: dict[str, Feature] = {}
    rests: dict[str, None] = {}
    versions: dict[str, set[str]] = {}
    targets: dict[str, None] = {}
    in_messages: set[str] = set()
    for store in stores:
        in_messages.update(*store.message_words.values())
        features |= store.features
        rests.update(dict.fromkeys(rest for found in store.variants.values() for rest in found))
        targets.update(dict.fromkeys(store.targets))
        # Users do not have a toolkit paired with the headers of another release.
        for name, releases in store.releases.items():
            versions.setdefault(name, set()).update(releases)
    return make_vocabulary(features.values(), rests, versions, targets, in_messages)


loads = lru_cache(maxsize=None)(json.loads)
"""Parse JSON that many records share: treat the value as immutable."""

_FACTS = ("case", "title", "topic", "features_json", "links_json", "expected_json", "backend", "library", "toolkit")


def read_known(paths: Sequence[Path]) -> Known:
    """Read the cells of results: ``results.parquet`` files, ``.jsonl`` files and folders of these.

    A later file takes precedence.

    Raises
    ------
    RecordError
        If a file cannot be read.
    PartUnavailable
        If a file is Parquet and pyarrow is not installed.
    """
    return _known([_parquet(path) if path.suffix == ".parquet" else _lines(path) for path in paths])


def known_of(records: Iterable[Record]) -> Known:
    """Return the cells of records in memory, one record per cell."""
    return _known([_records(records, ())])


def _known(parts: Iterable[_Part]) -> Known:
    rows: dict[str, Row] = {}
    facts: dict[tuple[Any, ...], None] = {}
    runs: dict[str, str] = {}
    hosts: set[str] = set()
    for found, part_rows, started, own in parts:
        for row in found:
            # A cell with an answer wins over a later one without an answer.
            if row.cell not in rows or row.letter not in (UNTRIED, UNAVAILABLE):
                rows[row.cell] = row
        facts.update(dict.fromkeys(part_rows))
        runs |= started
        hosts |= own
    features = features_of(
        (*fact[:3], *(loads(text) for text in fact[3:6]), place_of_fault(*fact[6:])) for fact in facts
    )
    return Known(rows=list(rows.values()), features=features, runs=runs, hosts=tuple(sorted(hosts)))


_Part = tuple[Iterable[Row], Iterable[tuple[Any, ...]], Mapping[str, str], set[str]]


def _parquet(path: Path) -> _Part:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise needs(f"{path}: reading Parquet", "report", error) from None
    wanted = list(dict.fromkeys((*COLUMNS, "reason", "notes_json", *_FACTS, "toolchain_json")))
    try:
        # read_table is not used: it loads pandas if installed, which takes longer than the answer.
        # Later axes have no column of their own: the last column contains them, and files of earlier versions lack
        # them.
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
    notes = [loads(text) if text and any(start in text for start in OF_CODE) else () for text in columns["notes_json"]]
    columns["message"] = list(map(text_of_row, columns["status"], columns["message"], columns["reason"], notes))
    rows = [make_row(*values) for values in zip(*(columns[name] for name in COLUMNS), strict=True)]
    toolchains = dict.fromkeys(
        zip(columns["backend"], columns["host_compiler"], columns["toolchain_json"], strict=True)
    )
    hosts = {own_of(backend, name, loads(text)) for backend, name, text in toolchains}
    return rows, dict.fromkeys(zip(*(columns[name] for name in _FACTS), strict=True)), runs, hosts - {""}


def _values(column: Any) -> list[Any]:
    """Return the values of a column. Each distinct value is built once."""
    found: list[Any] = []
    for chunk in column.chunks:
        if not hasattr(chunk, "dictionary"):
            found += chunk.to_pylist()
            continue
        values = [*chunk.dictionary.to_pylist(), None]
        # fill_null is not used: it loads pandas if installed.
        found += [values[-1 if place is None else place] for place in chunk.indices.to_pylist()]
    return found


def _lines(path: Path) -> _Part:
    results = read_records([path])
    merged = merge(results.records, results.plans)
    return _records(merged.records, merged.plans)


def _records(records: Iterable[Record], plans: Iterable[Mapping[str, Any]]) -> _Part:
    from harness.matrix.marks import kind_of

    rows: list[Row] = []
    facts: dict[tuple[Any, ...], None] = {}
    hosts: set[str] = set()
    for record in records:
        first = record["diagnostics"][0]["message"] if record["diagnostics"] else ""
        message = text_of_row(record["status"], first, record["reason"], record["notes"])
        place: Mapping[str, Any] = record
        rows.append(
            make_row(*(place.get(name, "") for name in COLUMNS[:-3]), kind_of(record).key, record["status"], message)
        )
        hosts.add(own_of(record["backend"], record.get("host_compiler", ""), record["toolchain"]))
        nested = (json.dumps(place[name]) for name in ("features", "links", "expected"))
        facts[record["case"], record["title"], record["topic"], *nested, *(str(place[key]) for key in _FACTS[6:])] = (
            None
        )
    return rows, facts, _runs(plans), hosts - {""}


def _runs(plans: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {str(plan.get("run", "")): str(plan.get("started") or "") for plan in plans}


SCHEMA = 3
"""2: host compilers. 3: the places of known faults, and names in programs."""
_NAMES = ("variant", "backend", "library", "toolkit", "host_compiler", "target", "message")
_LARGEST = 256 << 20
"""The maximum unpacked size of the file in bytes."""


def packed_answers(
    cells: Iterable[Sequence[str]], features: Mapping[str, Feature], runs: Mapping[str, str], hosts: Iterable[str] = ()
) -> bytes:
    """Return ``answers.json.gz`` of cells, each with the values of `COLUMNS`. The same cells give the same bytes.

    Each name and message occurs once. The cells of a case are grouped by their common values, and each group has its
    targets with their marks.
    """
    names: dict[str, dict[str, int]] = {name: {} for name in _NAMES}
    marks: dict[tuple[str, str], int] = {}
    found: dict[str, dict[tuple[Any, ...], list[list[int]]]] = {}

    def place(name: str, value: str) -> int:
        return names[name].setdefault(value, len(names[name]))

    for cell, case, variant, backend, library, toolkit, host, target, mark, status, message in cells:
        device = cell.removeprefix(cell_id(case, variant, backend, library, toolkit, target))
        values = {"variant": variant, "backend": backend, "library": library, "toolkit": toolkit, "host_compiler": host}
        key = (*(place(name, value) for name, value in values.items()), device)
        of = found.setdefault(case, {}).setdefault(key, [[], [], []])
        of[0].append(place("target", target))
        of[1].append(marks.setdefault((mark, status), len(marks)))
        of[2].append(place("message", message or ""))
    value = {
        "schema": SCHEMA,
        "runs": dict(runs),
        "hosts": sorted(hosts),
        "features": [[item.case, item.title, item.topic, item.features, item.links, item.reasons, item.faults, item.names] for item in features.values()],
        "marks": list(marks),
        "names": {name: list(known) for name, known in names.items()},
        "cells": {case: [[*key, *of] for key, of in groups.items()] for case, groups in found.items()},
    }  # fmt: skip
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "replace"), mtime=0)


def read_packed(path: Path) -> Store:
    """Read the output of `packed_answers`.

    Raises
    ------
    RecordError
        If the file is not such an output.
    """
    try:
        with gzip.open(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise RecordError(f"{path}: unpacks to more than {_LARGEST >> 20} MiB, and is not read")
        value = json.loads(data)
        if value["schema"] > SCHEMA:
            raise RecordError(f"{path}: made by a newer cumatrix: update cumatrix")
        return _store(_converted(value))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        why = (str(error).splitlines() or ["damaged"])[0]
        raise RecordError(f"{path}: not a file of cumatrix's packed answers: {why}") from None


def _converted(value: Mapping[str, Any]) -> Mapping[str, Any]:
    if value["schema"] < 2:
        value = _with_hosts(value)
    if value["schema"] < 3:
        # Schema 2 does not contain the cells of a fault.
        features = [[*of[:-1], [[*fault, []] for fault in of[-1]], []] for of in value["features"]]
        value = {**value, "features": features}
    return value


def _with_hosts(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert the format of schema 1, which has no host compilers."""
    cells = {case: [[*group[:4], 0, *group[4:]] for group in groups] for case, groups in value["cells"].items()}
    return {**value, "hosts": [], "names": {**value["names"], "host_compiler": [""]}, "cells": cells}


def _store(value: Mapping[str, Any]) -> Store:
    names, cells, marks = value["names"], value["cells"], value["marks"]
    split = [split_variant(variant) for variant in names["variant"]]
    features = {
        case: Feature(
            case=case, title=title, topic=topic, features=tuple(tags), links=tuple(links),
            reasons=tuple(reasons), faults=tuple((reason, link, tuple(places)) for reason, link, places in faults),
            names=tuple(identifiers),
        )
        for case, title, topic, tags, links, reasons, faults, identifiers in value["features"]
    }  # fmt: skip
    letters = [_row("", mark).letter for mark in marks]
    refused, silent = ({number for number, letter in enumerate(letters) if letter in of} for of in (REFUSED, SILENT))
    variants: dict[str, dict[str, None]] = {}
    uses: dict[str, set[Use]] = {}
    with_message: set[int] = set()
    words_of: dict[str, set[int]] = {}
    answered = 0
    for case, groups in cells.items():
        for variant, backend, library, _, host, _, targets, of, messages in groups:
            rest, header, version = split[variant]
            variants.setdefault(case, {})[rest] = None
            axis = (header, version) if header else split_host(names["host_compiler"][host])
            uses.setdefault(case, set()).add((names["backend"][backend], names["library"][library], *axis))
            loud = [target for target, mark in zip(targets, of, strict=True) if mark not in silent]
            answered += len(loud)
            with_message.update(loud)
            words_of.setdefault(case, set()).update(
                message for mark, message in zip(of, messages, strict=True) if mark in refused
            )

    def rows_of(cases: Iterable[str]) -> list[Row]:
        return [row for case in cases for group in cells.get(case, ()) for row in _rows(case, group, names, marks)]

    return Store(
        features=features,
        variants={case: tuple(found) for case, found in variants.items()},
        uses={case: frozenset(found) for case, found in uses.items()},
        toolkits=names["toolkit"],
        targets=sorted((names["target"][number] for number in with_message), key=target_key),
        runs=value["runs"],
        answered=answered,
        rows_of=rows_of,
        hosts=tuple(value["hosts"]),
        message_words={
            case: words_of_messages(names["message"][number] for number in found) for case, found in words_of.items()
        },
    )


def _rows(case: str, group: Sequence[Any], names: Mapping[str, Sequence[str]], marks: Sequence[Sequence[str]]) -> Iterable[Row]:  # fmt: skip
    variant, backend, library, toolkit, host = (
        names[name][place] for name, place in zip(_NAMES, group[:5], strict=False)
    )
    for target, mark, message in zip(*group[6:], strict=True):
        name = names["target"][target]
        cell = cell_id(case, variant, backend, library, toolkit, name, group[5])
        yield make_row(
            cell, case, variant, backend, library, toolkit, host, name, *marks[mark], names["message"][message]
        )


def _row(cell: str, mark: Sequence[str]) -> Row:
    return make_row(cell, *[""] * (len(COLUMNS) - 4), *mark, "")
