"""Cells as one small file for answers, ``answers.json.gz``: read within a moment, by the standard library alone."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.answers.cells import COLUMNS, Row, make_row, split_variant
from harness.answers.features import Feature
from harness.answers.hosts import split_host
from harness.answers.spelling import words_said
from harness.answers.store import Store, Use
from harness.answers.verdict import REFUSED, SILENT
from harness.matrix.order import target_key
from harness.records.errors import RecordError

SCHEMA = 2
"""2: host compilers."""
_NAMES = ("variant", "backend", "library", "toolkit", "host_compiler", "target", "message")
_LARGEST = 256 << 20
"""Bytes that the file may have when it is unpacked."""


def packed_answers(
    cells: Iterable[Sequence[str]], features: Mapping[str, Feature], runs: Mapping[str, str], hosts: Iterable[str] = ()
) -> bytes:
    """``answers.json.gz`` of cells, each with the values of `COLUMNS`; the same cells give the same bytes.

    Each name and message appears once; the cells of a case are grouped by what they share, and each group has its targets with their marks.
    """
    names: dict[str, dict[str, int]] = {name: {} for name in _NAMES}
    marks: dict[tuple[str, str], int] = {}
    found: dict[str, dict[tuple[Any, ...], list[list[int]]]] = {}

    def place(name: str, value: str) -> int:
        return names[name].setdefault(value, len(names[name]))

    for cell, case, variant, backend, library, toolkit, host, target, mark, status, message in cells:
        device = cell.removeprefix(_cell(case, variant, backend, library, toolkit, target, ""))
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
        "features": [[item.case, item.title, item.topic, item.features, item.links, item.reasons, item.faults] for item in features.values()],
        "marks": list(marks),
        "names": {name: list(known) for name, known in names.items()},
        "cells": {case: [[*key, *of] for key, of in groups.items()] for case, groups in found.items()},
    }  # fmt: skip
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return gzip.compress(text.encode("utf-8", "replace"), mtime=0)


def read_packed(path: Path) -> Store:
    """The content of `packed_answers`.

    Raises
    ------
    RecordError
        When it is no such file.
    """
    try:
        with gzip.open(path) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise RecordError(f"{path}: unpacks to more than {_LARGEST >> 20} MiB, and is not read")
        value = json.loads(data)
        if value["schema"] > SCHEMA:
            raise RecordError(f"{path}: made by a newer cumatrix: update cumatrix")
        return _store(value if value["schema"] > 1 else _with_hosts(value))
    except (OSError, EOFError, zlib.error, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        why = (str(error).splitlines() or ["damaged"])[0]
        raise RecordError(f"{path}: these are no packed answers of cumatrix's: {why}") from None


def _with_hosts(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The format of schema 1, without host compilers."""
    cells = {case: [[*group[:4], 0, *group[4:]] for group in groups] for case, groups in value["cells"].items()}
    return {**value, "hosts": [], "names": {**value["names"], "host_compiler": [""]}, "cells": cells}


def _store(value: Mapping[str, Any]) -> Store:
    names, cells, marks = value["names"], value["cells"], value["marks"]
    split = [split_variant(variant) for variant in names["variant"]]
    features = {
        case: Feature(
            case=case, title=title, topic=topic, features=tuple(tags), links=tuple(links),
            reasons=tuple(reasons), faults=tuple((reason, link) for reason, link in faults),
        )
        for case, title, topic, tags, links, reasons, faults in value["features"]
    }  # fmt: skip
    letters = [_row("", mark).letter for mark in marks]
    refused, silent = ({number for number, letter in enumerate(letters) if letter in of} for of in (REFUSED, SILENT))
    variants: dict[str, dict[str, None]] = {}
    uses: dict[str, set[Use]] = {}
    told: set[int] = set()
    said: dict[str, set[int]] = {}
    answered = 0
    for case, groups in cells.items():
        for variant, backend, library, _, host, _, targets, of, messages in groups:
            rest, header, version = split[variant]
            variants.setdefault(case, {})[rest] = None
            axis = (header, version) if header else split_host(names["host_compiler"][host])
            uses.setdefault(case, set()).add((names["backend"][backend], names["library"][library], *axis))
            loud = [target for target, mark in zip(targets, of, strict=True) if mark not in silent]
            answered += len(loud)
            told.update(loud)
            said.setdefault(case, set()).update(
                message for mark, message in zip(of, messages, strict=True) if mark in refused
            )

    def rows_of(cases: Iterable[str]) -> list[Row]:
        return [row for case in cases for group in cells.get(case, ()) for row in _rows(case, group, names, marks)]

    return Store(
        features=features,
        variants={case: tuple(found) for case, found in variants.items()},
        uses={case: frozenset(found) for case, found in uses.items()},
        toolkits=names["toolkit"],
        targets=sorted((names["target"][number] for number in told), key=target_key),
        runs=value["runs"],
        answered=answered,
        rows_of=rows_of,
        hosts=tuple(value["hosts"]),
        said={case: words_said(names["message"][number] for number in found) for case, found in said.items()},
    )


def _rows(case: str, group: Sequence[Any], names: Mapping[str, Sequence[str]], marks: Sequence[Sequence[str]]) -> Iterable[Row]:  # fmt: skip
    variant, backend, library, toolkit, host = (
        names[name][place] for name, place in zip(_NAMES, group[:5], strict=False)
    )
    for target, mark, message in zip(*group[6:], strict=True):
        name = names["target"][target]
        cell = _cell(case, variant, backend, library, toolkit, name, group[5])
        yield make_row(
            cell, case, variant, backend, library, toolkit, host, name, *marks[mark], names["message"][message]
        )


def _row(cell: str, mark: Sequence[str]) -> Row:
    return make_row(cell, *[""] * (len(COLUMNS) - 4), *mark, "")


def _cell(case: str, variant: str, backend: str, library: str, toolkit: str, target: str, device: str) -> str:
    """Id of a cell, as `harness.model.Cell.id` has it; ``device`` is what follows the target."""
    return f"{case}{f'[{variant}]' if variant else ''} {backend}{f'@{library}' if library else ''} cuda{toolkit} {target}{device}"
