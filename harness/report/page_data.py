"""The matrix in the form that the page's script reads: names once, cells as numbers.

Each file is a script with one text, compressed JSON. A page opened from disk can load scripts only, and a text that
JSON.parse reads cannot run as code. docs/page.md describes the format.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

import pandas as pd

from harness.analysis.frame import column_of, rows_of
from harness.backends import BACKENDS, label_of
from harness.environments.releases import NAMES as SEARCHED
from harness.matrix.axes import (
    AXES,
    AXIS,
    COLUMNS,
    PLACE,
    PROGRAM,
    TOOLCHAIN,
    axis_key,
    backend_key,
    column_key,
    natural_key,
    parameters,
    parameters_of,
    version_key,
)
from harness.matrix.marks import ENDINGS, KINDS, Mark
from harness.matrix.ranges import ranges, spell
from harness.model import Stage, Status, Verdict
from harness.model.case import tensor_cores_of
from harness.model.cell import RESULT_VALUES, RESULTS, cell_id
from harness.model.condition import NAMES, VALUES, Version, Words
from harness.model.outcome import main_message
from harness.protocol.text import clean, one_line
from harness.records import Record, weight
from harness.records.failures import main_message_of
from harness.records.merge import failed_at
from harness.records.record import text_of
from harness.records.record_names import facts_of, known_values
from harness.report.case import More
from harness.report.publish import is_own
from harness.toolkits.header_libraries import LIBRARIES

_KINDS: Mapping[type, str] = {str: "text", Words: "words", bool: "flag", float: "number", Version: "version"}
_OF_COLUMNS = ("backend", "library", "wheels", "toolkit", "headers", "target", "suffix", "virtual", "cc")
_OF_CELLS = tuple(name for name in NAMES if name not in _OF_COLUMNS)
_FILTERS = ("status", "verdict", "stage", "environment", *(axis.key for axis in AXIS.values() if axis.filter))


def names_data(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the names that the page contains, each with its kind, and with its values if the list is complete."""
    values = {**VALUES, **RESULT_VALUES, **known_values(table[["backend", "target"]].to_dict("records"))}
    # Headers equal the toolkit if no cell takes the headers of another release.
    filters = {*_FILTERS, *(["headers"] if table["headers"].any() else [])}
    return {
        name: {
            "kind": _KINDS[kind],
            "about": AXIS[name].about if name in AXIS else "",
            "filter": name in filters,
            **({"values": list(values[name])} if name in values else {}),
        }
        for name, kind in {**dict.fromkeys((*AXIS, *_FILTERS), str), **RESULTS}.items()  # filters in order
        if name != "cell"
    }


def column_facts(columns: Sequence[tuple[str, ...]]) -> dict[str, list[Any]]:
    """Return each column's value by name."""
    found = [facts_of(dict(zip(COLUMNS, column, strict=True))) for column in columns]
    return {name: [_plain(facts[name]) for facts in found] for name in _OF_COLUMNS}


def cell_facts(table: pd.DataFrame, known: Mapping[str, Mapping[str, Any]]) -> tuple[list[int], dict[str, list[Any]]]:
    """Return the facts of environments: a number for each cell, and the value of each number by name.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    known : Mapping
        Records and planned cells by their id. For an absent cell, its row counts.
    """
    names = ("cell", *TOOLCHAIN, "target")
    # Compared by identity: records from Parquet share their common values.
    spelled: dict[tuple[int, int], str] = {}
    read: dict[tuple[Any, ...], int] = {}
    facts: dict[tuple[Any, ...], int] = {}
    numbers = []
    for values in rows_of(table, names):
        cell = known.get(values[0], {})
        toolchain, device = cell.get("toolchain"), cell.get("device")
        if (what := spelled.get((id(toolchain), id(device)))) is None:
            requested = (toolchain or {}).get("requested") or {}
            what = repr((requested.get("packages"), requested.get("host_compiler"), device))
            spelled[id(toolchain), id(device)] = what
        key = (*values[1:-1], what, " on " in values[0])
        if key not in read:
            found = facts_of({**cell, **dict(zip(names, values, strict=True))})
            read[key] = facts.setdefault(tuple(_plain(found.get(name)) for name in _OF_CELLS), len(facts))
        numbers.append(read[key])
    columns = zip(_OF_CELLS, zip(*facts, strict=True), strict=False)
    return numbers, {name: list(values) for name, values in columns if any(value is not None for value in values)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Version) else value


NUMBERS = ("seconds", "registers", "shared", "spills")

_OUTCOME = ("mark", "status", "stage", "verdict", "environment", "run")
_WORDS: Mapping[str, Sequence[str]] = {
    "mark": tuple(KINDS),
    "status": ("", *Status),
    "stage": ("", *Stage),
    "verdict": ("", *Verdict),
}


def script(name: str, text: str) -> bytes:
    """Return a script with compressed JSON under `name`. Hosts of published pages limit the size of a report."""
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), 9))
    return b'cumatrix.receive(%s,"%s");\n' % (json.dumps(name).encode(), packed)


def compact(value: Any) -> str:
    """Return compact JSON."""
    return text_of(value)


def matrix_data(
    table: pd.DataFrame,
    about: Mapping[str, Any],
    files: Mapping[str, str],
    known: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return axes, and the facts of every cell that the first view and most filters need.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    about : Mapping
        The first record of each case, for facts that the table lacks.
    files : Mapping[str, str]
        Page of each case.
    known : Mapping, optional
        Records and planned cells by their id, for conditions.
    """
    columns = sorted(set(rows_of(table, COLUMNS)), key=lambda key: column_key(*key))
    names: dict[str, list[str]] = {
        **{axis.key: sorted(table[axis.key].unique(), key=axis_key(axis.key)) for axis in AXES},
        "case": list(table["case"].unique()),  # topic by topic, as the rows
        **{key: list(_WORDS.get(key, ())) or sorted(table[key].unique(), key=natural_key) for key in _OUTCOME},
    }
    place = {key: {name: number for number, name in enumerate(values)} for key, values in names.items()}

    across, ends = len(PROGRAM), len(PLACE)
    at = {column: number for number, column in enumerate(columns)}
    outcomes: dict[tuple[tuple[str, ...], int], int] = {}
    rows: list[tuple[str, ...]] = []
    patterns: list[list[int]] = []
    cells = []
    numbers, facts = cell_facts(table, known or {})
    for values, number in zip(rows_of(table, [*PLACE, *_OUTCOME]), numbers, strict=True):
        row, column, outcome = values[:across], values[across:ends], values[ends:]
        if not rows or rows[-1] != row:
            rows.append(row)
            patterns.append([])
        patterns[-1].append(at[column])
        cells.append(outcomes.setdefault((outcome, number), len(outcomes)))
    kinds: dict[tuple[int, ...], int] = {}
    shapes = [kinds.setdefault(tuple(pattern), len(kinds)) for pattern in patterns]

    first = table.drop_duplicates("case").set_index("case")
    return {
        "schema": 1,
        "axes": [axis.to_json() for axis in AXES],
        "marks": [_shown(kind) for kind in KINDS.values()],
        "names": {key: [clean(name) for name in values] for key, values in names.items()},
        **_parameters(names["variant"]),
        "conditions": names_data(table),
        "facts": {"columns": column_facts(columns), "cells": facts},
        "trackers": _trackers(),
        "cases": [
            {
                "page": files[case],
                "project": clean(about.get(case, {}).get("project", "")),
                "topic": place["topic"][first.at[case, "topic"]],
                "title": clean(first.at[case, "title"]),
                "features": [clean(item) for item in about.get(case, {}).get("features", ())],
                "links": [clean(item) for item in about.get(case, {}).get("links", ())],
            }
            for case in names["case"]
        ],
        "rows": {
            **{key: [place[key][row[number]] for row in rows] for number, key in enumerate(PROGRAM)},
            "pattern": shapes,
        },
        "columns": {
            key: [place[key][column[number]] for column in columns] for number, key in enumerate(COLUMNS)
        },
        "patterns": [list(kind) for kind in kinds],
        "outcomes": {
            **{key: [place[key][outcome[at]] for outcome, _ in outcomes] for at, key in enumerate(_OUTCOME)},
            "facts": [number for _, number in outcomes],
        },
        "cells": cells,
    }  # fmt: skip


def _parameters(variants: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of variants with their values, and by parameter the number of each variant's value.

    Numbers start at 1. A variant without the parameter has 0.
    """
    found = parameters(variants)
    return {
        "parameters": [{**item.to_json(), "values": list(item.values)} for item in found],
        "variants": {
            item.key: [
                item.values.index(own[item.key]) + 1 if item.key in own else 0 for own in map(parameters_of, variants)
            ]
            for item in found
        },
    }


def _shown(kind: Mark) -> dict[str, Any]:
    """Return a kind of cell in the form that the page reads."""
    shown = {name: getattr(kind, name) for name in ("key", "letter", "word", "meaning")}
    return {**shown, "style": kind.css, "good": kind.as_expected}


def more_data(table: pd.DataFrame, known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return search data by cell: messages, numbers and tensor core instructions.

    The page loads it after the first view.
    """
    texts: dict[str, int] = {"": 0}
    messages = map(main_message, table["status"], table["message"], table["reason"])
    message = [texts.setdefault(text[:300], len(texts)) for text in messages]
    numbers = {name: table[name].round(2).astype(object).where(table[name].notna(), None).tolist() for name in NUMBERS}
    cores: dict[str | None, int] = {}
    of = [cores.setdefault(_tensor_cores(known.get(cell, {})), len(cores)) for cell in table["cell"]]
    return {
        "texts": [clean(text) for text in texts],
        "message": message,
        "numbers": numbers,
        "cores": {"values": [text if text is None else clean(text) for text in cores], "of": of},
    }


def _tensor_cores(cell: Mapping[str, Any]) -> str | None:
    kernels = (cell.get("artifact") or {}).get("kernels") or ()
    return tensor_cores_of([kernel.get("tensor_cores") for kernel in kernels])


_TARGETS = ("sm_80", "sm_90", "sm_86", "sm_89", "sm_75")
"""The architecture of a story: the first of these that was tried."""

_LONGEST_MESSAGE = 240


@dataclass(frozen=True, kw_only=True)
class Story:
    """An upstream report.

    Parameters
    ----------
    name, link : str
        The issue.
    case : str
        The case with the program.
    title, text : str
        The subject, and the finding.
    backends : tuple of str
        Backends whose cells show the finding.
    """

    name: str
    link: str
    case: str
    title: str
    text: str
    backends: tuple[str, ...]


STORIES = (
    Story(
        name="CuPy #8155",
        link="https://github.com/cupy/cupy/issues/8155",
        case="wmma/accumulator-16x16x8",
        title="A tensor-core fragment that Jitify alone calls an incomplete type",
        text="A kernel with a 16 x 16 x 8 accumulator compiled with NVRTC, and not with jitify=True. CuPy told NVRTC the architecture only after Jitify had compiled by itself; Jitify then guesses one, "
        "no newer than compute_75, and there the accumulator does not exist. CuPy 13.1.0 tells it first.",
        backends=("nvrtc", "cupy-nvrtc", "cupy-jitify"),
    ),
    Story(
        name="CuPy #8156",
        link="https://github.com/cupy/cupy/issues/8156",
        case="shared-memory/cupy-8156",
        title="Too much static shared memory, refused with a reason or without one",
        text="A kernel may have 49152 bytes (48 KiB) of static shared memory. With more, ptxas names the limit. With enable_cooperative_groups=True CuPy before 14 compiles relocatable code, whose size "
        "nothing checks, and has the driver link it: what the user sees is an invalid image, and no reason.",
        backends=("nvrtc", "cupy-nvrtc"),
    ),
    Story(
        name="Numba #9432",
        link="https://github.com/numba/numba/issues/9432",
        case="cooperative/numba-9432",
        title="Grid synchronisation that one release cannot cache",
        text="A kernel that calls cuda.cg.this_grid().sync() and is declared with cache=True cannot be lowered by Numba 0.59.0. Without the cache it can, and so it can with the releases before and after.",
        backends=("numba", "numba-cuda"),
    ),
)


def stories_of(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the stories that have cells, with their rows.

    There is a row for each program, tool and range of versions, with the results of own and published cells.
    """
    by_case: dict[str, list[Record]] = {story.case: [] for story in STORIES}
    for record in records:
        if record["case"] in by_case and weight(record) == 2:
            by_case[record["case"]].append(record)
    found = []
    for story in STORIES:
        cells = [record for record in by_case[story.case] if record["backend"] in story.backends]
        target = next((name for name in _TARGETS if any(record["target"] == name for record in cells)), "")
        if target:
            rows = _rows([record for record in cells if record["target"] == target])
            found.append({**vars(story), "target": target, "rows": rows})
    return found


def _rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    places: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record["variant"], record["backend"], record["library"]), []).append(record)
    ordered = sorted(places, key=lambda place: (natural_key(place[0]), backend_key(place[1]), version_key(place[2])))
    stories = [
        (place, _outcomes_in(places[place], own=True), _outcomes_in(places[place], own=False)) for place in ordered
    ]
    rows = []
    for (variant, backend), of_tool in groupby(stories, lambda item: item[0][:2]):
        for run in ranges((place[2], cells) for place, *cells in of_tool):
            own, published = run.outcome
            rows.append(
                {"variant": variant, "tool": label_of(backend), "versions": spell(run.values), "own": own, "published": published}
            )  # fmt: skip
    return rows


def _outcomes_in(records: Sequence[Mapping[str, Any]], *, own: bool) -> list[dict[str, Any]]:
    """Return outcomes of cells of one place, each with its CUDA releases in order."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in sorted(records, key=lambda record: version_key(record["toolkit"])):
        if is_own(record) == own and "+headers" not in record["toolkit"]:
            first = main_message_of(record)
            works = record["status"] == "built"
            outcome = ENDINGS["built"].verb if works else failed_at(record).replace("_", " ")  # type: ignore[arg-type]
            found.setdefault((outcome, "" if works else one_line(first, _LONGEST_MESSAGE)), []).append(
                record["toolkit"]
            )
    return [
        {
            "works": outcome == ENDINGS["built"].verb,
            "outcome": outcome,
            "message": message,
            "toolkits": ", ".join(dict.fromkeys(toolkits)),
        }
        for (outcome, message), toolkits in found.items()
    ]


# Control characters in JSON. Plain ASCII without one is clean.
_SUSPECT = re.compile(r"\\[bfru]|\x7f")

CELLS = 8000
"""Cells per file. Larger files repeat fewer values."""

_OF_ID = ("case", "variant", "backend", "library", "toolkit", "target")
"""Columns of the table that form a cell's id, in order."""

_ONLY_OWN = frozenset(("fingerprint", "seconds", "peak_bytes"))
"""Keys of a record that the details of a published cell omit, together with the artifact's hash.

`results.parquet` of the published matrix contains them, and they do not compress.
"""

# Already in the matrix or in the list of cases.
_KNOWN = frozenset(("schema", *(axis.key for axis in AXES), "title", "features", "links"))


def chunks(table: pd.DataFrame, records: Mapping[str, Record], more: More) -> Iterator[str]:
    """Yield the JSON of each file: the distinct values of each key of a record, and the number of each cell's value.

    Of an id, the JSON contains only the part after the target: the rest is the cell's place.

    Parameters
    ----------
    table : DataFrame
        The cells in the order of the matrix (`harness.analysis.cells_frame`). A cell without a record never arrived.
    records : Mapping
        Records by id of their cell.
    more : callable
        Returns the page's additions to a record.
    """
    cells = list(table["cell"])
    rest = [cell.removeprefix(cell_id(*place)) for cell, place in zip(cells, rows_of(table, _OF_ID), strict=True)]
    for start in range(0, len(cells), CELLS):
        found = []
        for cell, further in zip(cells[start : start + CELLS], rest[start : start + CELLS], strict=True):
            record = records.get(cell)
            shown = _shown_of(record, more(record)) if record else {}
            shown["cell"] = further
            found.append(shown)
        columns = {
            clean(key): column
            for key in dict.fromkeys(chain.from_iterable(found))
            if key not in _KNOWN and (column := _column(column_of(found, key)))
        }
        texts = (f"{text_of(key)}:{column}" for key, column in columns.items())
        yield f'{{"start":{start},"columns":{{{",".join(texts)}}}}}'


def _shown_of(record: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the page's additions. A published record omits keys that only its owner needs."""
    shown = {**record, **more}
    if not is_own(record):
        for key in _ONLY_OWN:
            shown.pop(key, None)
        if artifact := record.get("artifact"):
            shown["artifact"] = {**artifact}
            shown["artifact"].pop("sha256", None)
    return shown


def _column(values: Sequence[Any]) -> str:
    """Return the JSON of the values of one key, or an empty string if no cell has a value."""
    texts = {"null": 0}
    # Compared by identity: records from Parquet share their common values.
    numbers = {
        place: texts.setdefault(text, len(texts)) if (text := _text(value)) not in _EMPTY else 0
        for place, value in dict(zip(map(id, values), values, strict=True)).items()
    }
    if len(texts) == 1:
        return ""
    return f'{{"values":[{",".join(texts)}],"of":{text_of([numbers[id(value)] for value in values])}}}'


_EMPTY = frozenset(("null", '""', "[]", "{}"))


def _text(value: Any) -> str:
    text = text_of(value)
    # Checked first, because most values are plain texts and a search takes several times as long.
    plain = type(value) is str and value.isascii() and value.isprintable()
    if not plain and (not text.isascii() or _SUSPECT.search(text)):
        return text_of(_cleaned(value))
    return text


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
    return value


def _trackers() -> dict[str, dict[str, str]]:
    """Return the address of the form for a new issue, by its tracker's subject.

    Returns
    -------
    dict
        ``backends`` by backend, ``libraries`` by header library. NVRTC and nvcc have no public tracker and are absent.
        Also by backend: ``searched``, the library whose releases ``cumatrix bisect`` can search, and ``languages``, the
        language that it looks for first.
    """
    return {
        "backends": {name: info.tracker for name, info in BACKENDS.items() if info.tracker},
        "libraries": {name: library.tracker for name, library in LIBRARIES.items() if library.tracker},
        "searched": {name: info.library for name, info in BACKENDS.items() if info.library in SEARCHED},
        "languages": {name: info.languages[0] for name, info in BACKENDS.items()},
    }
