"""Feature sections of a case's page: remedies, the program, evidence, and cells grouped by outcome."""

from __future__ import annotations

import os
import re
import shlex
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2s
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from harness.analysis.frame import outcome_of
from harness.analysis.history import History
from harness.answers.feature import VersionRow
from harness.backends import library_of
from harness.causes import catalogue, causes_of
from harness.matrix.axes import (
    PROGRAM,
    TOOLCHAIN,
    ToolchainColumn,
    fold_targets,
    matrix_link,
    natural_key,
    place_of,
    program_of,
    ranks,
    target_key,
)
from harness.matrix.marks import KINDS, Mark, kind_of
from harness.model import Case, Target
from harness.protocol.text import clean, one_line
from harness.published import ENVIRONMENT
from harness.records import Merged, Record
from harness.records.failures import again_command, main_message_of

Place = tuple[tuple[str, ...], tuple[str, ...]]
"""Row and toolchain, each with a value per axis."""
_Placed = tuple[Place, Mapping[str, Any]]


@dataclass(frozen=True)
class Where:
    """Cells of one variant and toolchain.

    Parameters
    ----------
    variant, targets : str
        The variant, and the targets folded into ranges.
    toolchain : ToolchainColumn
        The toolchain.
    cell : str
        Id of the first cell.
    own : bool
        Whether the cells are the report author's own (`harness.report.publish`).
    """

    variant: str
    toolchain: ToolchainColumn
    targets: str
    cell: str
    own: bool = True


@dataclass(frozen=True)
class CellGroup:
    """Cells of one case with the same outcome, or without a record.

    Parameters
    ----------
    kind : Mark
        The common kind.
    cells : tuple of dict
        Records or planned cells, in the order of the matrix; at least one.
    where : tuple of Where
        The same cells, folded.
    """

    kind: Mark
    cells: tuple[Mapping[str, Any], ...]
    where: tuple[Where, ...]

    @property
    def first(self) -> Mapping[str, Any]:
        """The record that represents the group."""
        return self.cells[0]

    @cached_property
    def anchor(self) -> str:
        """Id of the group in the page of its case. It stays the same as long as the first cell does."""
        return "g" + anchor_of(self.first["cell"])

    @property
    def message(self) -> str:
        """The message, on one line."""
        if self.kind.key == "missing":
            return ""
        return one_line(main_message_of(self.first), 200)

    @property
    def signal(self) -> str:
        """The signal, such as ``11 (SIGSEGV)``, or an empty text."""
        number = self.first["signal"]
        if number is None:
            return ""
        names = {item.value: item.name for item in signal.Signals}
        return f"{number} ({names[number]})" if number in names else str(number)

    @cached_property
    def resources(self) -> list[tuple[str, dict[str, str]]]:
        """By kernel, the range of each resource over all cells: ``("sum", {"num_regs": "16–40", "tensor_cores": "HMMA"})``."""
        found: dict[str, dict[str, set[int]]] = {}
        used: dict[str, set[str]] = {}
        for cell in self.cells:
            for kernel in (cell.get("artifact") or {}).get("kernels", ()):
                of = found.setdefault(kernel["name"], {})
                for name, value in kernel.items():
                    if isinstance(value, int):
                        of.setdefault(name, set()).add(value)
                if isinstance(kernel.get("tensor_cores"), str):
                    used.setdefault(kernel["name"], set()).update(kernel["tensor_cores"].split() or ["none"])
        tensor = {kernel: {"tensor_cores": ", ".join(sorted(names))} for kernel, names in used.items()}
        return [
            (kernel, {name: _range(values) for name, values in resources.items()} | tensor.get(kernel, {}))
            for kernel, resources in sorted(found.items())
        ]


def anchor_of(cell: str) -> str:
    """Return an id that stays the same between reports, to keep links working."""
    return "c" + blake2s(cell.encode(), digest_size=5).hexdigest()


def group_cells(merged: Merged) -> dict[str, list[CellGroup]]:
    """Return the cells by case, grouped if they differ only in place, target and facts that follow from the target.

    Within a case the most severe kind of cell comes first, then the outcome with the most cells.
    """
    axes: dict[Place, set[str]] = {}
    found: dict[str, dict[tuple[Any, ...], list[_Placed]]] = {}
    key_of = cache(_without_target)
    cells = [*merged.records, *merged.missing]
    cells.sort(key=ranks(cells))
    for cell in cells:
        place = (place_of(cell, PROGRAM), place_of(cell, TOOLCHAIN))
        axes.setdefault(place, set()).add(cell["target"])
        key: tuple[Any, ...] = ("missing",)
        if "status" in cell:
            key = (kind_of(cell).key, *_facts(cell, key_of))
        found.setdefault(cell["case"], {}).setdefault(key, []).append((place, cell))
    ordered = {place: sorted(targets, key=target_key) for place, targets in axes.items()}
    return {
        case: sorted(
            (_group(KINDS[key[0]], cells, ordered) for key, cells in groups.items()),
            key=lambda group: (_GRAVITY.index(group.kind.key), -len(group.cells)),
        )
        for case, groups in sorted(found.items(), key=lambda item: natural_key(item[0]))
    }


# Unexpected kinds first, then noteworthy ones, then good ones.
_GRAVITY = [
    *(key for key, kind in KINDS.items() if not kind.as_expected),
    *(key for key, kind in reversed([*KINDS.items()]) if kind.as_expected),
]


def _group(kind: Mark, cells: list[_Placed], axes: Mapping[Place, list[str]]) -> CellGroup:
    places: dict[tuple[Place, bool], list[Mapping[str, Any]]] = {}
    for place, cell in cells:
        places.setdefault((place, cell.get("environment") != ENVIRONMENT), []).append(cell)
    where = tuple(
        Where(
            program_of(members[0])[1],
            ToolchainColumn(place[1]),
            fold_targets((cell["target"] for cell in members), axes[place]),
            members[0]["cell"],
            own,
        )
        for (place, own), members in places.items()
    )
    return CellGroup(kind, tuple(cell for _, cell in cells), where)


def _facts(record: Mapping[str, Any], key_of: Any) -> tuple[Any, ...]:
    """Return the facts that separate outcomes, with the cell's own target written as XX."""
    expected = record["expected"]
    target = record["target"]
    return (
        *(record["status"], record["stage"], record["signal"], *record["stages"]),
        key_of(record["reason"], target),
        *(key_of(item["message"], target) for item in record["diagnostics"]),
        *(expected[key] for key in ("status", "stage", "diagnostic", "xfail", "reason")),
    )


def _without_target(text: str, target: str) -> str:
    return Target.parse(target).masked(text)


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


_EVENTS = 20

More = Callable[[Record], Mapping[str, Any]]


def annotator(history: History | None) -> More:
    """Return a function that returns ``remedy`` and ``history`` of a record, if there are any.

    Parameters
    ----------
    history : History or None
        Earlier runs.
    """
    events = _events(history) if history is not None else {}

    def annotate(record: Record) -> Mapping[str, Any]:
        more: dict[str, Any] = {}
        if found := remedies(record):
            more["remedy"] = found
        if record["cell"] in events:
            more["history"] = events[record["cell"]][-_EVENTS:]
        return more

    return annotate


def remedies(record: Record) -> Sequence[Mapping[str, Any]]:
    """Return known causes with remedies, as plain values. For a failure, the causes of mere warnings are omitted."""
    built = record["status"] == "built"
    return _remedies(tuple(match.cause.name for match in causes_of(record) if built or not match.of_warning))


@cache
def _remedies(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the texts of causes. Equal ones are the same object, which is then written once."""
    causes = [catalogue()[name] for name in names]
    return [
        {"title": cause.title, "cause": cause.cause, "remedy": cause.remedy, "links": list(cause.links)}
        for cause in causes
    ]


def _events(history: History) -> dict[str, list[dict[str, Any]]]:
    """Return runs by cell, oldest first. Consecutive runs with the same outcome are one event."""
    found: dict[str, list[dict[str, Any]]] = {}
    names = ["cell", "run", "started", "mark", "outcome", "message"]
    for cell, run, started, mark, outcome, message in history.table[names].itertuples(index=False, name=None):
        events = found.setdefault(cell, [])
        if events and (events[-1]["outcome"], events[-1]["message"], events[-1]["mark"]) == (outcome, message, mark):
            events[-1]["runs"] += 1
            events[-1]["last"] = started
        else:
            event = {"outcome": outcome, "mark": mark, "message": message, "run": run, "started": started}
            events.append({**event, "last": started, "runs": 1})
    return found


HELPS = 2
"""Known causes at the top of a case's page."""

FAULTS = 2
"""Known faults at the top of the page."""

OUTCOMES = 3
"""Outcomes at the top of the page."""

VARIANTS = 1
"""Variants with visible tables at the top of the page."""

ROWS = 8
"""Rows of a complete table over versions. In a longer table, the newest versions of each tool come first."""

SHORT = 12
"""Lines of a program that are visible without a click."""

LONGEST = 300
"""Characters of an answer that a case's page shows in full."""

PLACES = 6
"""Variants and toolchains of one outcome that a case's page lists."""

SNIPPET = 60
"""Maximum number of lines of a program at the top of the page."""


def helps_of(groups: Sequence[CellGroup]) -> list[Mapping[str, Any]]:
    """Return known causes with remedies without duplicates, those of refusals first."""
    found: dict[str, Mapping[str, Any]] = {}
    answered = [group for group in groups if group.kind.key != "missing"]
    for group in sorted(answered, key=lambda group: group.kind.group not in ("not", "fault", "surprise")):
        for item in remedies(cast("Record", group.first)):
            found.setdefault(item["title"], item)
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class Again:
    """One cell, compiled again.

    Parameters
    ----------
    commands : str
        The commands, one per line.
    outcome, message : str
        The recorded outcome, such as ``rejected at compile``, and the main message of a failure.
    """

    commands: str
    outcome: str
    message: str


def again_of(groups: Sequence[CellGroup]) -> Again | None:
    """Return the last cell that does not build, else the last one that builds, or None without a known command."""
    tried = [group for group in groups if group.kind.group in ("surprise", "fault", "not", "works")]
    tried.sort(key=lambda group: group.kind.group == "works")
    for group in tried:
        record = cast("Record", group.cells[-1])
        # A published record lacks the name of its environment, which is named after the release.
        release = f"{library_of(record['backend'])}-{record['library']}"
        where = release if record["environment"] == ENVIRONMENT else record["environment"]
        if command := again_command({**record, "environment": where}):
            toolkit = record["toolkit"]
            # A toolkit of the machine is already installed.
            install = "" if "@" in toolkit else f"cumatrix toolkits install {shlex.quote(toolkit)}\n"
            message = "" if record["status"] == "built" else main_message_of(record)
            return Again(commands=install + command, outcome=outcome_of(record), message=one_line(message, 200))
    return None


def snippet_of(sources: Mapping[str, str]) -> str:
    """Return the program if it is short, else an empty string."""
    programs = [
        text for name, text in sources.items() if name.endswith((".cu", ".cuh", ".py")) and "reference" not in name
    ]
    short = [text for text in programs if text.count("\n") <= SNIPPET and len(text) < SNIPPET * 100]
    return short[0] if short else ""


def version_columns(rows: Sequence[VersionRow], toolkits: Sequence[str]) -> list[tuple[str, int]]:
    """Return the columns of a table over CUDA releases, newest first: heading and position.

    Neighboring releases with the same content share a column. A release without results has no column.

    Parameters
    ----------
    rows : sequence of VersionRow
        Tools with their results for each release.
    toolkits : sequence of str
        The releases, oldest first.
    """
    columns = []
    contents = [[row.cells[place] for row in rows] for place in range(len(toolkits))]
    for content, run in groupby(range(len(toolkits)), lambda place: contents[place]):
        places = list(run)
        names = [toolkits[place] or "bundled CUDA" for place in places]
        if any(kind for kind, _ in content):
            columns.append((names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}", places[0]))
    return columns[::-1]


def newest_first(rows: Sequence[VersionRow]) -> list[VersionRow]:
    """Return the rows of a table over versions in the order of tools, with the newest versions of each tool first."""
    return [row for _, run in groupby(rows, lambda row: row.tool) for row in reversed(list(run))]


def split_newest(rows: Sequence[VersionRow]) -> tuple[list[VersionRow], list[VersionRow]]:
    """Split the rows of a long table over versions into the newest versions of each tool, and the earlier ones."""
    ordered = newest_first(rows)
    if len(ordered) <= ROWS:
        return ordered, []
    newest = [next(run) for _, run in groupby(ordered, lambda row: row.tool)]
    return newest, [row for row in ordered if row not in newest]


def short_of(rows: Sequence[VersionRow]) -> str:
    """Return the architectures that build with the newest versions of each tool: ``NVRTC from sm_80; CuPy all``."""
    newest = [next(run) for _, run in groupby(newest_first(rows), lambda row: row.tool)]
    last = [next((words for kind, words in reversed(row.cells) if kind), "") for row in newest]
    return "; ".join(f"{row.tool} {words}" for row, words in zip(newest, last, strict=True) if words)


def proof_link(case: str, backend: str, targets: Sequence[str]) -> str:
    """Return the address of the cells that prove a statement, relative to a case's page."""
    return f"../{matrix_link(case=case, backend=backend, target=targets)}"


def page_names(cases: Iterable[str]) -> dict[str, str]:
    """Return the file name of each case's page. Names are unique and safe in paths and addresses."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for case in sorted(set(cases)):
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", case).strip(".-")[:80]
        # Case-insensitive file systems would store A.html and a.html in one file.
        if not stem or stem.lower() in taken:
            stem = f"{stem}-{anchor_of(case)}".lstrip("-")
        taken.add(stem.lower())
        names[case] = f"{stem}.html"
    return names


_SUFFIXES = frozenset((".toml", ".cu", ".cuh", ".h", ".hpp", ".py", ".cpp"))
_MAX_BYTES = 100_000


def files_of(case: str, folders: Iterable[Path], programs: Mapping[str, Case]) -> dict[str, str]:
    """Return the texts of a case's files, from the first folder with the case, by name.

    For a program in the configuration, the names are paths in its project.
    """
    if case in programs:
        known = programs[case]
        files = [*known.sources.values(), *known.together]
        names = {os.path.relpath(path, known.root) if known.root else path.name: path for path in files}
        return {name: _read(path) for name, path in names.items() if path.is_file() and not path.is_symlink()}
    return next((texts for folder in folders if (texts := case_files(folder, case))), {})


def case_files(cases: Path | None, case: str) -> dict[str, str]:
    """Return the texts of the files in the case's folder by name, ``case.toml`` first, or none if the folder does not exist.

    Parameters
    ----------
    cases : Path or None
        The folder of cases.
    case : str
        Name of a case from a record, an untrusted path.
    """
    if cases is None:
        return {}
    root = cases.resolve()
    folder = (root / case).resolve() if "\0" not in case else root
    if folder == root or root not in folder.parents or not folder.is_dir():
        return {}
    return {path.name: _read(path) for path in _shown(folder.iterdir())}


def excerpt(files: Mapping[str, str], name: str, line: int | None, around: int = 3) -> list[tuple[int, str, bool]]:
    """Return the lines around the line of a diagnostic: number, text, and whether it is that line.

    Unknown lines give none.

    Parameters
    ----------
    files : Mapping[str, str]
        The output of `case_files`.
    name : str
        File of the diagnostic.
    line : int or None
        Its line, from 1.
    """
    lines = (files.get(name) or files.get(name.rpartition("/")[2], "")).splitlines()
    if not line or not 1 <= line <= len(lines):
        return []
    first = max(1, line - around)
    return [(number, lines[number - 1], number == line) for number in range(first, min(len(lines), line + around) + 1)]


def _shown(paths: Iterable[Path]) -> list[Path]:
    # Links are skipped: they could lead out of the folder of cases into a published report.
    found = [path for path in paths if path.suffix in _SUFFIXES and path.is_file() and not path.is_symlink()]
    return sorted(found, key=lambda path: (path.name != "case.toml", path.name))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    text = clean(data[:_MAX_BYTES].decode("utf-8", "replace"))
    return text if len(data) <= _MAX_BYTES else f"{text}\n… (cut)"
