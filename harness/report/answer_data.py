"""Data of the answer page: features, vocabulary, and the findings of each architecture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from harness.analysis.frame import rows_of
from harness.answers.answer import tool_label
from harness.answers.cells import (
    COLUMNS,
    Entry,
    Known,
    brings_tools,
    features_of,
    make_row,
    names_in,
    own_in,
    place_of_fault,
    text_of_row,
)
from harness.answers.question import words_of
from harness.answers.replies import Replies
from harness.answers.store import Store, vocabulary_of
from harness.answers.table import FeatureRow, Field, lines_of
from harness.answers.vocabulary import IGNORED
from harness.answers.vocabulary import to_json as intents_json
from harness.answers.wheels import names_of
from harness.cases.discovery import case_rank, library_topics
from harness.causes.catalogue import HEADER, catalogue
from harness.matrix.marks import ANSWER_KINDS, GROUPS
from harness.model import Status, Target
from harness.model.cell import HostCompiler
from harness.model.gpus import ARCHITECTURES
from harness.protocol.text import clean
from harness.published import ENVIRONMENT
from harness.records import Merged
from harness.wheels.published import Package

_USUAL = "sm_80"
"""The default architecture for readers, if it was tried."""


def known_of(
    merged: Merged,
    table: pd.DataFrame,
    *,
    apart: bool = False,
    texts: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Known:
    """Return the input of answers from a report's records and table.

    With `apart`, own cells are separate from published ones. `texts` contains the texts of the cases' files.
    """
    notes = {record["cell"]: record["notes"] for record in merged.records if record["notes"]}
    columns = (table[name] for name in ("cell", "status", "message", "reason"))
    message = [
        text_of_row(status, text, why, notes.get(cell, ())) for cell, status, text, why in zip(*columns, strict=True)
    ]
    with_messages = table.assign(message=message)
    rows = [
        make_row(*values, own=apart and environment != ENVIRONMENT)
        for *values, environment in rows_of(with_messages, [*COLUMNS, "environment"])
    ]
    facts: list[tuple[Any, ...]] = [(record["case"], record["title"], record["topic"], record["features"], record["links"], record["expected"], place_of_fault(record["backend"], record["library"], record["toolkit"])) for record in merged.records]  # fmt: skip
    facts += [(cell["case"], cell.get("title", ""), cell["topic"], (), (), None, "") for cell in merged.missing]
    names = names_in({case: [text for name, text in of.items() if name != "case.toml"] for case, of in texts.items()})
    runs = {str(plan.get("run", "")): str(plan.get("started") or "") for plan in merged.plans}
    return Known(rows=rows, features=features_of(facts, names), runs=runs, hosts=tuple(sorted(own_in(merged.records))))


def first_target(known: Known) -> str:
    """Return the first architecture to show: the usual one, else the one with the most results."""
    counts: dict[str, int] = {}
    for entry in known.entries:
        for target in entry.answered:
            counts[target] = counts.get(target, 0) + 1
    most = max(counts.values(), default=0)
    if counts.get(_USUAL, 0) * 2 > most:
        return _USUAL
    return max(counts, key=lambda target: counts[target], default=_USUAL)


def architecture_of(target: str) -> str:
    """Return the generation of a target, such as ``Ada``, or an empty string if it is unknown."""
    plain = str(Target.parse(target).plain)
    generations = ("maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell")
    return next((name.capitalize() for name in generations if plain in ARCHITECTURES[name]), "")


def columns_of(known: Known) -> list[tuple[str, str]]:
    """Return key and heading of each column with results: a tool, and a tool with each header library."""
    found: dict[str, str] = {}
    for entry in sorted(known.entries, key=lambda entry: (known.tools.index(entry.tool), entry.axis)):
        if entry.answered:
            found.setdefault(_key(entry), tool_label(entry))
    return list(found.items())


def answers_data(known: Known, pages: Mapping[str, str], wheels: Sequence[Package] = ()) -> dict[str, Any]:
    """Return the data that the page needs at once, for any architecture.

    Parameters
    ----------
    known : Known
        The tried cells.
    pages : Mapping[str, str]
        The page of each case.
    wheels : sequence of Package
        Packages with known wheels.
    """
    store = Store.of(known)
    vocabulary = replace(vocabulary_of(store), packages=names_of(wheels))
    own = {
        case: list(
            dict.fromkeys(
                word for rest in store.variants.get(case, ()) for word in words_of(rest) if word not in IGNORED
            )
        )
        for case in known.features
    }
    places = {case: case_rank(feature.topic, feature.links) for case, feature in known.features.items()}
    ranks = {place: rank for rank, place in enumerate(sorted(set(places.values())))}
    numbers = {word: number for number, word in enumerate((*vocabulary.words, *vocabulary.message_words))}
    return {
        # The features below contain the words of names.
        "vocabulary": _clean({key: value for key, value in vocabulary.to_json().items() if key != "named"}),
        "intents": intents_json(),
        "releases": _clean(store.releases),
        "targets": [[target, architecture_of(target)] for target in known.targets],
        "first": first_target(known),
        "groups": {
            key: {"letter": item.letter, "word": item.word, "answered": item.answered} for key, item in GROUPS.items()
        },
        "kinds": {key: {"sense": kind.sense, "text": kind.text} for key, kind in ANSWER_KINDS.items()},
        "hosts": _clean(_versions(known.hosts)),
        "columns": [[key, clean(label), _backend(key), key.partition("+")[2]] for key, label in columns_of(known)],
        "shared": {
            "most": MOST_TOOLS,
            "heading": KERNEL_LANGUAGES,
            "backends": sorted({_backend(key) for key, _ in columns_of(known) if brings_tools(_backend(key))}),
        },
        "features": [
            {
                "case": clean(case),
                "title": clean(feature.title or case),
                "topic": clean(topic_title(feature.topic)),
                "rank": ranks[places[case]],
                # The script makes the usual name itself.
                "page": "" if pages[case] == f"{case.replace('/', '-')}.html" else pages[case],
                # Numbers of the vocabulary's words and of compiler messages: most words occur in several features.
                "words": [[numbers[word] for word in words] for words in (*known.words_of(case), own[case])],
                "messages": sorted(numbers[word] for word in known.message_words.get(case, ()) if word in numbers),
            }
            for case, feature in known.features.items()
        ],
    }


def replies_data(known: Known, itself: Known) -> dict[str, Any]:
    """Return replies by key (`harness.answers.replies`). Each row occurs once, and replies contain row numbers."""
    replies = Replies(known, itself, vocabulary_of(Store.of(known)))
    features = {case: number for number, case in enumerate(known.features)}
    rows: dict[tuple[Any, ...], int] = {}
    found = {}
    for key in dict.fromkeys(replies.known_keys()):
        if reply := replies.of(key):
            lines = [(features.get(row.case, -1), row.kind, row.text, row.cells[-1:]) for row in reply.rows]
            numbers = [rows.setdefault(line, len(rows)) for line in lines]
            found[clean(key)] = [clean(reply.sentence), numbers, reply.sources]
    return {"rows": _clean([list(row) for row in rows]), "replies": found}


def causes_data() -> dict[str, Any]:
    """Return the known causes that a message alone shows: patterns, title, sentences and links, and the pattern of a missing header."""
    causes = [
        [
            cause.header.text if cause.header else "",
            cause.pattern.text if cause.pattern else "",
            cause.unless.text if cause.unless else "",
            cause.near.text if cause.near else "",
            cause.title,
            cause.where,
            [sentence for sentence in (cause.cause, cause.remedy) if sentence],
            list(cause.links),
            # A pasted message rarely contains its file or the tool's name.
            ["", *sorted(cause.tools)] if cause.file else sorted(cause.tools),
            cause.against.text if cause.against else "",
            cause.shown.text if cause.shown else "",
        ]
        for cause in catalogue().values()
        # Users paste compilers' messages, not those of cumatrix.
        if (cause.pattern or cause.header) and cause.status != {Status.UNAVAILABLE}
    ]
    return {"header": HEADER.pattern.replace("(?P<", "(?<"), "causes": causes}


def _versions(hosts: Sequence[str]) -> list[list[Any]]:
    """Return each host compiler with its versions by name."""
    return [[host, HostCompiler(version=host).versions] for host in hosts]


def answers_for(known: Known, target: str, itself: Known) -> dict[str, Any]:
    """Return the results on one architecture, and those about it (`harness.answers.answer`).

    Each verdict and each row of letters occurs once. Fields contain their numbers.
    """
    columns = {key: number for number, (key, _) in enumerate(columns_of(known))}
    features = {case: number for number, case in enumerate(known.features)}
    verdicts: dict[tuple[str, str, str], int] = {}
    grids: dict[tuple[tuple[str, ...], tuple[str, ...], str], int] = {}
    lines: list[list[Any]] = []
    own: list[list[int]] = []
    for line in (*lines_of(itself, [target]), *_in_order(known, target)):
        fields = [
            [
                columns[_key(field.entry)],
                verdicts.setdefault((field.verdict.kind, field.verdict.text, _note(field)), len(verdicts)),
                grids.setdefault((field.grid.libraries, field.grid.toolkits, field.grid.letters), len(grids)),
                *([verdicts.setdefault((field.own.kind, field.own.text, field.own.tried), len(verdicts))] if field.own else ()),
            ]
            for field in line.fields
            if _key(field.entry) in columns
        ]  # fmt: skip
        if not line.case:
            own = fields
        elif fields:
            lines.append([features[line.case], clean(line.label), _clean(line.words), fields])
    return {
        "verdicts": _clean([list(item) for item in verdicts]),
        "grids": [[list(libraries), list(toolkits), letters] for libraries, toolkits, letters in grids],
        "lines": lines,
        "itself": own,
    }


def _in_order(known: Known, target: str) -> list[FeatureRow]:
    """Return features ordered by the number of tools with results, then as in the matrix."""
    lines = lines_of(known, [target])
    of_feature: dict[str, set[str]] = {}
    for line in lines:
        of_feature.setdefault(line.case, set()).update(
            _key(field.entry) for field in line.fields if not field.verdict.silent
        )
    return sorted(lines, key=lambda line: -len(of_feature[line.case]))


MOST_TOOLS = 8
"""The maximum number of columns before the kernel languages share one. No row has results of two kernel languages."""
KERNEL_LANGUAGES = "Kernel languages"


def _shared(backends: Iterable[str]) -> set[str]:
    """Return the backends that share a column of the table. The page's script does the same (`assets/tools.js`)."""
    every = set(backends)
    languages = set(filter(brings_tools, every))
    return languages if len(every) > MOST_TOOLS and len(languages) > 1 else set()


def shown_table(known: Known, target: str, pages: Mapping[str, str]) -> tuple[list[str], list[dict[str, Any]]]:
    """Return headings and rows of the answer table for the page without scripts, topic by topic.

    Each tool has one column, with the results of all header libraries and host compilers.
    """
    labels, lines = dict(columns_of(known)), []
    places = {case: case_rank(feature.topic, feature.links) for case, feature in known.features.items()}
    for line in sorted(_in_order(known, target), key=lambda line: places[line.case]):
        fields = {key: field for field in line.fields if (key := _key(field.entry)) in labels}
        if fields:
            lines.append((line, fields))
    used = {key for _, fields in lines for key in fields}
    tools: dict[str, list[str]] = {}
    shared = _shared(map(_backend, used))
    # The shared column is the last one.
    for key in sorted(filter(used.__contains__, labels), key=lambda key: _backend(key) in shared):
        tools.setdefault(KERNEL_LANGUAGES if _backend(key) in shared else _backend(key), []).append(key)
    for keys in tools.values():
        keys.sort(key=lambda key: "+" in key)
    plain = {_backend(key): label for key, label in reversed(labels.items()) if "+" not in key}
    plain[KERNEL_LANGUAGES] = KERNEL_LANGUAGES
    shown = []
    for line, fields in lines:
        feature = known.features[line.case]
        cells = [
            [_shown(fields[key], labels[key] if len(keys) > 1 and ("+" in key or tool == KERNEL_LANGUAGES) else "") for key in keys if key in fields]
            for tool, keys in tools.items()
        ]  # fmt: skip
        while not cells[-1]:
            cells.pop()
        shown.append({"topic": topic_title(feature.topic), "case": line.case, "title": feature.title, "page": pages[line.case], "label": line.label, "cells": cells})  # fmt: skip
    return [plain.get(tool, labels[keys[0]]) for tool, keys in tools.items()], shown


def topic_title(name: str) -> str:
    """Return the title of a topic, or its name if the library has no such topic."""
    topic = library_topics().get(name)
    return topic.title if topic else name


def _shown(field: Field, name: str) -> dict[str, str]:
    """Return the results of one tool with at most one header library.

    The script's data and the feature's page have the notes.
    """
    return {"kind": field.verdict.kind, "text": field.verdict.text, "name": name, "own": field.own.text if field.own else ""}  # fmt: skip


def _backend(key: str) -> str:
    return key.partition("+")[0].partition(" ")[0]


def _note(field: Field) -> str:
    """Return the text below a field's statement: architectures, qualifications, and the tried versions."""
    where = "" if field.where == "nowhere" else field.where
    text = where if field.verdict.works or not where else f"builds {where}"
    tried = f"tried: {field.verdict.tried}" if field.verdict.tried else ""
    return "; ".join(filter(None, (text, field.verdict.note, tried)))


def _key(entry: Entry) -> str:
    return f"{entry.tool}+{entry.axis}" if entry.axis else entry.tool


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, Sequence | set | frozenset) else value
