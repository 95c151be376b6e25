"""The JSON API, a table for an ``<iframe>``, and badges of each feature."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from harness.answers.answer import finding_json, tool_label
from harness.answers.cells import Entry, Feature, Known
from harness.answers.feature import FeaturePage
from harness.answers.query import ToolFinding
from harness.answers.verdict import EMPTY, NOTHING, REFUSED, SILENT, UNAVAILABLE, WORKS
from harness.backends import library_of
from harness.causes import catalogue, causes_of
from harness.matrix.axes import natural_key
from harness.matrix.marks import ANSWER_KINDS, BAD, GOOD, GROUPS, KNOWN, NONE, counted_group, grouped, surprises_among
from harness.model.target import TARGET_PATTERN
from harness.protocol.text import clean, one_line
from harness.records import Record
from harness.report.case import CellGroup
from harness.report.junit import xml_text

_LABEL = "#3c4043"
_NARROW = frozenset("fijlrtI!'()|.,:;[] ")
_WIDE = frozenset("mwMW@%ABCDEFGHKNOQRUVXY&")


def badges(table: pd.DataFrame) -> dict[str, bytes]:
    """Return badges by file name: ``cupy13.svg`` for each environment, ``all.svg`` for everything.

    Parameters
    ----------
    table : DataFrame
        The cells, with ``environment`` and ``mark`` (`harness.analysis.cells_frame`).
    """
    counts = {
        str(name): part["mark"].value_counts().to_dict() for name, part in table.groupby("environment", sort=False)
    }
    found = {"all.svg": badge("cumatrix", *_say(table["mark"].value_counts().to_dict())).encode()}
    for name in sorted(counts, key=natural_key):
        found[_file(name, found)] = badge(name or "no environment", *_say(counts[name])).encode()
    return found


def badge(label: str, message: str, colour: str) -> str:
    """Return a badge. Label and message may be any text."""
    label, message = (xml_text(one_line(text, 60)) for text in (label, message))
    left, right = (_width(text) + 10 for text in (label, message))
    title = f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label={quoteattr(title)}>'
        f"<title>{escape(title)}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="{_LABEL}"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f'<text x="5" y="14" textLength="{left - 10}">{escape(label)}</text>'
        f'<text x="{left + 5}" y="14" textLength="{right - 10}">{escape(message)}</text></g></svg>\n'
    )


def _say(counts: dict[str, int]) -> tuple[str, str]:
    """Return text and color of a badge, from numbers of cells by kind."""
    groups = {**dict.fromkeys(GROUPS, 0), **grouped(counts)}
    bad, lacking, known = surprises_among(counts), groups["unavailable"], groups["fault"]
    tried = sum(counts.values()) - groups["na"] - lacking
    if not tried:
        return GROUPS["unavailable"].word if lacking else "no results", NONE.badge
    if bad:
        return f"{bad:,} of {tried:,} not as expected", BAD.badge
    works = f"{groups['works']:,} of {tried:,} {GROUPS['works'].plural}"
    if known:
        works += f", {known:,} known failure{'s' if known > 1 else ''}"
    if lacking:
        works += f", {counted_group('unavailable', lacking)}"
    if known or lacking:
        return works, KNOWN.badge
    # A result without working cells may be as expected, but is no reason for a green badge.
    return works, (GOOD if groups["works"] else NONE).badge


def _file(name: str, taken: dict[str, bytes]) -> str:
    """Return a file name that is valid in any file system and URL."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "environment"
    number = 1
    while (file := f"{stem}{f'-{number}' if number > 1 else ''}.svg") in taken:
        number += 1
    return file


def _width(text: str) -> int:
    """Return the approximate width in Verdana at 11 pixels. textLength makes it exact."""
    return round(
        sum(4.2 if letter in _NARROW else 8.6 if letter in _WIDE or ord(letter) > 0x2E80 else 6.8 for letter in text)
    )


EMBED_FOLDER = "features"


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """Embeddable parts of a feature, for its page.

    Parameters
    ----------
    stem : str
        Name of its files, without suffix.
    badges : tuple of (str, str)
        File below ``badges`` and the tool of each.
    address : str
        The published address of the report, with a slash at its end; by default, the words ``ADDRESS/``.
    """

    stem: str
    badges: tuple[tuple[str, str], ...]
    address: str


def embedded_of(page: str, feature: FeaturePage, address: str) -> Embedded:
    """Return the names of a feature's embeddable files (`harness.report.site.case_files_of`), from the name of its page."""
    stem = page.removesuffix(".html")
    return Embedded(
        stem=stem,
        badges=tuple((f"{stem}--{item.key}.svg", item.tool) for item in summaries_of(feature)),
        address=f"{address.rstrip('/')}/" if address else "ADDRESS/",
    )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The statement about a feature with one tool, over all variants and architectures.

    Parameters
    ----------
    key : str
        The backend, with the other library or the host compiler if there is one: ``nvrtc``, ``nvrtc-cutlass``.
    tool, text, colour : str
        The tool's label, the statement in a few words, and the colour of its badge.
    """

    key: str
    tool: str
    text: str
    colour: str


def summaries_of(feature: FeaturePage) -> list[Summary]:
    """Return the summary of each tool with results."""
    found = []
    for tool, findings in _tools(feature).items():
        text, colour = _message(findings)
        found.append(
            Summary(key=f"{_plain(findings[0].entry.tool)}{_axis(findings[0])}", tool=tool, text=text, colour=colour)
        )
    return found


def _axis(finding: ToolFinding) -> str:
    return f"-{_plain(finding.entry.axis)}" if finding.entry.axis else ""


def _plain(name: str) -> str:
    """Return a name without characters that are special in addresses, HTML and Markdown."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def badges_of(case: str, feature: FeaturePage, embedded: Embedded) -> Iterator[tuple[str, bytes]]:
    """Yield the badge of each tool."""
    for (name, _), item in zip(embedded.badges, summaries_of(feature), strict=True):
        yield f"badges/{name}", badge(f"{case}, {item.tool}", item.text, item.colour).encode()


def _tools(feature: FeaturePage) -> dict[str, list[ToolFinding]]:
    """Return results by tool, over all variants and architectures. Tools without results are absent."""
    found: dict[str, list[ToolFinding]] = {}
    for item in feature.variants:
        for finding in item.finding.tools:
            if not finding.verdict.silent:
                found.setdefault(finding.tool, []).append(finding)
    return found


def _message(findings: Sequence[ToolFinding]) -> tuple[str, str]:
    """Return words and colour of a badge: the common verdict, else whether all, some or no findings work."""
    texts = {item.verdict.text for item in findings}
    if len(texts) == 1:
        return findings[0].verdict.text, ANSWER_KINDS[findings[0].verdict.kind].tone.badge
    if all(item.verdict.works for item in findings):
        return "works, not in all versions", GOOD.badge
    if any(item.verdict.works or item.verdict.kind == "part" for item in findings):
        return "works in part", KNOWN.badge
    return GROUPS["not"].word, BAD.badge


SCHEMA = 1
"""Version of the documents and of their folder. New keys do not raise it."""

FOLDER = f"api/v{SCHEMA}"
"""Folder of the documents in a report."""

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
    """Return everything known about a feature.

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
            {"variants": item.finding.label, "tool": finding.tool, **finding_json(finding)}
            for item in page.variants
            for finding in item.finding.tools
        ],
        "outcomes": _outcomes(known.entries_of(feature.case)),
        "untried": list(page.untried),
        "faults": [{"reason": reason, "link": link} for reason, link in feature.known_faults],
        "causes": _causes(groups),
    }


def feature_json(document: Mapping[str, Any]) -> bytes:
    """Return the file of a feature."""
    return as_bytes({"schema": SCHEMA, **document})


OWN_KEYS = frozenset(("statements",))
"""Keys that only a feature's own document contains: nearly half of its bytes."""


def features_json(documents: Iterable[Mapping[str, Any]], newest: str) -> bytes:
    """Return the file of all features. `newest` is the day of the newest run."""
    features = [{key: value for key, value in of.items() if key not in OWN_KEYS} for of in documents]
    return as_bytes({"schema": SCHEMA, "newest": newest, "features": features})


def as_bytes(value: Mapping[str, Any]) -> bytes:
    """Return a document as a file."""
    return (clean(json.dumps(value, ensure_ascii=True, separators=(",", ":"))) + "\n").encode()


def _outcomes(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return the releases of each tool, newest first. Variants with the same outcomes share an entry."""
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
    """Return versions with a compiler's answer, each with the CUDA releases that have the same outcomes."""
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
        of["cuda"].append(grid.toolkits[toolkit] or "bundled")
    return list(found.values())


def _causes(groups: Iterable[CellGroup]) -> list[dict[str, Any]]:
    """Return the known causes of refusals, each with the first cell that shows it and the number of such cells."""
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
    """Return the JSON Schema of a feature's document. Readers should ignore keys that the schema does not name."""
    return {
        "$schema": DIALECT,
        "$id": f"urn:cumatrix:feature:{SCHEMA}",
        "title": f"{FOLDER}/features/NAME.json of a report of cumatrix",
        **object_of({"schema": {"const": SCHEMA}, **_keys()}),
    }


def features_schema() -> dict[str, Any]:
    """Return the JSON Schema of the document with all features."""
    shared = {key: value for key, value in _keys().items() if key not in OWN_KEYS}
    keys = {"schema": {"const": SCHEMA}, "newest": TEXT, "features": list_of(object_of(shared))}
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
    """Return the schema of an object with these keys. All except the optional ones are required."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
    }


def list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a list of these items."""
    return {"type": "array", "items": items}


def map_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with any keys."""
    return {"type": "object", "additionalProperties": values}
