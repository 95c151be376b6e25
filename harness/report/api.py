"""The JSON API: one document for each feature, and one with all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from harness.answers.answer import said_json, tool_label
from harness.answers.cells import Entry, Feature, Known
from harness.answers.feature import FeaturePage
from harness.answers.verdict import EMPTY, NOTHING, REFUSED, SILENT, UNAVAILABLE, WORKS
from harness.backends import library_of
from harness.causes import catalogue, causes_of
from harness.matrix.marks import ANSWER_KINDS
from harness.model.target import TARGET_PATTERN
from harness.records import Record
from harness.report.case import CellGroup
from harness.report.embed import summaries_of
from harness.report.text import clean

SCHEMA = 1
"""Version of the documents, and of their folder. New keys do not raise it."""

FOLDER = f"api/v{SCHEMA}"
"""Folder of a report with the documents."""

_OUTCOMES: Mapping[str, frozenset[str]] = {
    "built": frozenset(WORKS),
    "rejected": REFUSED,
    "without_kernel": frozenset(EMPTY),
    "not_applicable": frozenset(NOTHING),
    "unavailable": frozenset(UNAVAILABLE),
}
"""Letters of cells by key of a release."""


def feature_document(
    feature: Feature, page: FeaturePage, known: Known, groups: Iterable[CellGroup], file: str
) -> dict[str, Any]:
    """All that is known of a feature.

    Parameters
    ----------
    feature : Feature
        The case.
    page : FeaturePage
        Its statements.
    known : Known
        The cells.
    groups : iterable of CellGroup
        The records of its cells, by outcome.
    file : str
        Name of its page.
    """
    return {
        "case": feature.case,
        "title": feature.title,
        "topic": feature.topic,
        "page": f"cases/{file}",
        "links": list(feature.links),
        "sentence": page.sentence,
        "summary": {item.key: item.text for item in summaries_of(page)},
        "statements": [
            {"variants": item.finding.label, "tool": said.tool, **said_json(said)}
            for item in page.variants
            for said in item.finding.said
        ],
        "outcomes": _outcomes(known.entries_of(feature.case)),
        "untried": list(page.untried),
        "faults": [{"reason": reason, "link": link} for reason, link in feature.known_faults],
        "causes": _causes(groups),
    }


def feature_json(document: Mapping[str, Any]) -> bytes:
    """The file of a feature."""
    return as_bytes({"schema": SCHEMA, **document})


def features_json(documents: Sequence[Mapping[str, Any]], newest: str) -> bytes:
    """The file of all features; `newest` is the day of the newest run."""
    return as_bytes({"schema": SCHEMA, "newest": newest, "features": list(documents)})


def as_bytes(value: Mapping[str, Any]) -> bytes:
    """A document as a file."""
    return (clean(json.dumps(value, ensure_ascii=True, separators=(",", ":"))) + "\n").encode()


def _outcomes(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Releases of each tool, newest first; variants with the same outcomes share an entry."""
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if releases := _releases(entry):
            key = json.dumps([entry.tool, entry.axis, releases])
            of = found.setdefault(
                key,
                {
                    "tool": tool_label(entry),
                    "backend": entry.backend,
                    "versions_of": entry.axis or library_of(entry.backend),
                    "variants": [],
                    "releases": releases,
                },
            )
            of["variants"].append(entry.rest)
    return list(found.values())


def _releases(entry: Entry) -> list[dict[str, Any]]:
    """Versions, each with the CUDA releases that have the same outcomes; only those that a compiler answered for an architecture."""
    found: dict[str, dict[str, Any]] = {}
    grid = next(iter(entry.grids.values()))
    for place in reversed(range(len(grid.letters))):
        letters = {target: of.letters[place] for target, of in entry.grids.items()}
        if SILENT.issuperset(letters.values()):
            continue
        library, toolkit = divmod(place, len(grid.toolkits))
        outcomes = {
            name: [target for target, letter in letters.items() if letter in of] for name, of in _OUTCOMES.items()
        }
        kept = {name: targets for name, targets in outcomes.items() if targets}
        version = grid.libraries[library]
        of = found.setdefault(json.dumps([version, kept]), {"version": version, "cuda": [], **kept})
        of["cuda"].append(grid.toolkits[toolkit])
    return list(found.values())


def _causes(groups: Iterable[CellGroup]) -> list[dict[str, Any]]:
    """Known causes of refusals, each with the first cell that shows it and the number of such cells."""
    found: dict[str, dict[str, Any]] = {}
    for group in groups:
        if group.kind.group not in ("not", "fault", "surprise"):
            continue
        for match in causes_of(cast("Record", group.first)):
            if match.of_warning:
                continue
            cause = catalogue()[match.cause.name]
            of = found.setdefault(
                cause.name,
                {
                    "name": cause.name,
                    "title": cause.title,
                    "cause": cause.cause,
                    "remedy": cause.remedy,
                    "links": list(cause.links),
                    "cells": [group.first["cell"]],
                    "count": 0,
                },
            )
            of["count"] += len(group.cells)
    return list(found.values())


def feature_schema() -> dict[str, Any]:
    """JSON Schema of a feature's document; readers should ignore keys that it does not name."""
    return {
        "$schema": DIALECT,
        "$id": f"urn:cumatrix:feature:{SCHEMA}",
        "title": f"{FOLDER}/features/NAME.json of a report of cumatrix",
        **object_of({"schema": {"const": SCHEMA}, **_keys()}),
    }


def features_schema() -> dict[str, Any]:
    """JSON Schema of the document with all features."""
    keys = {"schema": {"const": SCHEMA}, "newest": TEXT, "features": list_of(object_of(_keys()))}
    return {
        "$schema": DIALECT,
        "$id": f"urn:cumatrix:features:{SCHEMA}",
        "title": f"{FOLDER}/all.json of a report of cumatrix",
        **object_of(keys),
    }


def _keys() -> dict[str, Any]:
    change = object_of(
        {**dict.fromkeys(("axis", "before", "after"), TEXT), "builds": {"type": "boolean"}, "cells": list_of(TEXT)}
    )
    statement = {
        **dict.fromkeys(("variants", "tool", "backend", "library", "host_compiler"), TEXT),
        "targets": list_of(TARGET),
        "kind": {"enum": list(ANSWER_KINDS)},
        **dict.fromkeys(("answer", "note", "tried"), TEXT),
        "changes": list_of(change),
        "cells": list_of(TEXT),
    }
    release = object_of(
        {"version": TEXT, "cuda": {**list_of(TEXT), "minItems": 1}},
        {key: {**list_of(TARGET), "minItems": 1} for key in _OUTCOMES},
    )
    tool = {
        **dict.fromkeys(("tool", "backend", "versions_of"), TEXT),
        "variants": list_of(TEXT),
        "releases": list_of(release),
    }
    cause = {
        **dict.fromkeys(("name", "title", "cause", "remedy"), TEXT),
        "links": list_of(TEXT),
        "cells": {**list_of(TEXT), "minItems": 1},
        "count": COUNT,
    }
    return {
        **dict.fromkeys(("case", "title", "topic", "page", "sentence"), TEXT),
        "links": list_of(TEXT),
        "summary": map_of(TEXT),
        "statements": list_of(object_of(statement)),
        "outcomes": list_of(object_of(tool)),
        "untried": list_of(TEXT),
        "faults": list_of(object_of({"reason": TEXT, "link": TEXT})),
        "causes": list_of(object_of(cause)),
    }


TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
TARGET = {"type": "string", "pattern": f"^{TARGET_PATTERN}$"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def object_of(properties: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys, all of them required except the optional ones."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
    }


def list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": items}


def map_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """An object with any keys."""
    return {"type": "object", "additionalProperties": values}
