"""The page "Which GPU runs what": published wheels by GPU, as HTML and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from harness.answers.wheels import SHOWN, STATES, WheelReplies, by_state, state_of
from harness.model.compatibility import RULES, Way
from harness.model.gpus import Gpu
from harness.protocol.text import clean
from harness.report.api import COUNT, DIALECT, FOLDER, SCHEMA, TARGET, TEXT, as_bytes, list_of, map_of, object_of
from harness.report.pages import Section
from harness.wheels.entries import Kind, Library, counted_targets
from harness.wheels.published import Package, Support, since, support

NAME, TITLE = "gpus", "Which GPU runs what"
"""The page's file, and its heading."""

_PRODUCTS = {
    61: "GTX 10", 70: "V100", 75: "T4, RTX 20", 80: "A100", 86: "RTX 30", 87: "Orin", 89: "RTX 40, L4", 90: "H100", 100: "B200",
    103: "B300", 110: "Thor", 120: "RTX 50", 121: "GB10",
}  # fmt: skip
_KINDS = {"native": "works", "jit": "but", "part": "part", "unknown": "untried", "none": "never"}
"""Colors of states: kinds of answers."""


def gpus_section(packages: Sequence[Package]) -> Section:
    """Return the page's content."""
    rows = [_row(package) for package in packages if package.newest]
    return Section(
        name=NAME,
        values={
            "heading": TITLE,
            "headings": [(str(gpu), _PRODUCTS[gpu.cc]) for gpu in SHOWN],
            "groups": [(label, list(of)) for label, of in groupby(rows, key=lambda row: row["label"])],
            "empty": [f"{each.name} {each.newest.version}" for each in packages if each.newest and not each.newest.libraries],
            "sources": [f"{each.name} {each.source}" for each in packages if not each.newest],
            "unknown": RULES["tegra"].text,
            "count": sum(len(each.releases) for each in packages),
        },
    )  # fmt: skip


def _row(package: Package) -> dict[str, Any]:
    release = package.newest
    assert release
    found = support(release, SHOWN) if release.libraries else []
    return {
        "label": package.label,
        "name": package.name,
        "release": release,
        "oldest": package.releases[0].version,
        "code": _code(release.libraries),
        "cells": [(_KINDS[state_of(each)], _word(each)) for each in found],
        "lines": _lines(package, found),
    }


def _word(found: Support) -> str:
    word = STATES[state_of(found)]
    if word == "JIT" and found.release and found.release.driver:
        return f"JIT {found.release.driver.partition('.')[0]}"
    return word


def _lines(package: Package, found: Iterable[Support]) -> list[tuple[str, str]]:
    """Return further facts with their kinds, in a sentence for the GPUs with the same facts."""
    groups: dict[tuple[str, str], list[str]] = {}
    for each in found:
        if text := _summary(package, each):
            groups.setdefault((_KINDS[state_of(each)], text), []).append(str(each.gpu))
    return [(kind, f"{', '.join(gpus)}: {text}") for (kind, text), gpus in groups.items()]


def _summary(package: Package, found: Support) -> str:
    runs, of = found.running, len(found.relations)
    if not found.runs:
        return next(iter(found.lacking)) if len(found.lacking) == 1 and found.way is Way.NONE else ""
    words = [f"PTX from {found.release} on"] if found.release else []
    if not found.complete:
        words.insert(0, f"in part, {runs} of {of} libraries" if runs < of else "not in all fatbins")
    first = since(package, found.gpu)
    if first and first is not package.releases[0]:
        words.append(f"since {first.version}")
    return ", ".join(words)


def _code(libraries: Iterable[Library]) -> str:
    """Return the code of all libraries: ``SASS 75 80 90a, PTX 90``."""
    units = [unit for library in libraries for unit in (*library.loaded, *library.further)]
    parts = []
    for kind in (Kind.SASS, Kind.PTX, Kind.LTO):
        targets = counted_targets(units, kind)
        parts += [f"{kind.upper()} {' '.join(target.number for target in targets)}"] if targets else []
    return ", ".join(parts)


def gpus_replies(packages: Sequence[Package]) -> dict[str, Any]:
    """Return replies by key, as `harness.report.answer_data.replies_data` does, each with a link to the page."""
    replies = WheelReplies(packages)
    texts: dict[str, int] = {}
    found: dict[str, Any] = {}
    for key in replies.known_keys():
        if reply := replies.of(key):
            rows = [texts.setdefault(clean(row.text), len(texts)) for row in reply.rows]
            found[key] = [clean(reply.sentence), rows, [f"{NAME}.html#{key.split(' ')[1]}"]]
    return {"rows": [[-1, "", text, []] for text in texts], "replies": found}


def wheels_json(packages: Sequence[Package]) -> bytes:
    """Return the document of the JSON API. Releases with the same relations share an entry."""
    return as_bytes({"schema": SCHEMA, "gpus": [str(gpu) for gpu in SHOWN], "packages": [_document(each) for each in packages]})  # fmt: skip


def _document(package: Package) -> dict[str, Any]:
    outcomes: list[dict[str, Any]] = []
    for release in reversed(package.releases):
        found = support(release, SHOWN) if release.libraries else []
        states = by_state(found)
        drivers = _by((each.release.driver, each.gpu) for each in found if each.release and each.release.driver)
        if outcomes and (outcomes[-1]["states"], outcomes[-1]["drivers"]) == (states, drivers):
            outcomes[-1]["versions"].append(release.version)
        else:
            outcomes.append({"versions": [release.version], "states": states, "drivers": drivers})
    newest = package.newest
    return {
        "name": clean(package.name),
        "label": clean(package.label),
        "source": clean(package.source),
        **({"file": clean(newest.file), "sha256": newest.sha256, "uploaded": newest.uploaded, "libraries": len(newest.libraries)} if newest else {}),
        "outcomes": outcomes,
        "since": _by((first.version, gpu) for gpu in SHOWN if (first := since(package, gpu))),
    }  # fmt: skip


def _by(pairs: Iterable[tuple[str, Gpu]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, gpu in pairs:
        found.setdefault(key, []).append(str(gpu))
    return found


def wheels_schema() -> dict[str, Any]:
    """Return the JSON Schema of that document."""
    states: Mapping[str, Any] = {state: list_of(TARGET) for state in STATES}
    outcome = object_of(
        {"versions": list_of(TEXT), "states": object_of({}, states), "drivers": map_of(list_of(TARGET))},
    )
    package = object_of(
        {
            **dict.fromkeys(("name", "label", "source"), TEXT),
            "outcomes": list_of(outcome),
            "since": map_of(list_of(TARGET)),
        },
        {**dict.fromkeys(("file", "sha256", "uploaded"), TEXT), "libraries": COUNT},
    )
    return {
        "$schema": DIALECT,
        "$id": f"urn:cumatrix:wheels:{SCHEMA}",
        "title": f"{FOLDER}/wheels.json of a report of cumatrix",
        **object_of({"schema": {"const": SCHEMA}, "gpus": list_of(TARGET), "packages": list_of(package)}),
    }
