"""The axes of the matrix: the keys that separate cells, in display order.

Every layout of cells follows from `AXES`: columns of tables and histories, plans, exports, the pages, the filters and
the conditions of the page's script. A new axis requires an entry in `AXES` and a key of the same name in
`harness.records.record`, which defines the content of records.

Parameters of variants and header libraries are separate dimensions: ``bytes=49156,form=static`` and ``cutlass=4.2.0``
are parts of the variant's name, which identifies a cell. Pages filter and group by each of them, and support statements
mention them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import repeat
from typing import Any, Literal
from urllib.parse import quote_plus

from packaging.version import InvalidVersion, Version

from harness.backends import BACKENDS
from harness.matrix.ranges import consecutive, spell, spell_tried
from harness.model import Cell, Target
from harness.model.cell import named_toolkit, titled_toolkit
from harness.model.target import Vendor
from harness.toolkits.header_libraries import LIBRARIES


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis.

    Parameters
    ----------
    key : str
        Key in records, column of tables.
    title : str
        Title in headings.
    side : str
        ``row``: the axis goes down the matrix; ``column``: it goes across.
    value : callable
        Returns a cell's value, for records and plans.
    about : str
        A description in a few words. The page shows it when it completes conditions.
    kind : str
        The kind of its values, for ordering and search: ``name`` (matches a part), ``word`` (matches as a whole),
        ``backend`` (in the order of `harness.backends.BACKENDS`), ``version``, ``release`` (of CUDA, maybe with the
        headers of another release), ``target``.
    filter : bool
        Whether the page has a filter for it.
    prefix : str
        The prefix of a value in headings: ``CUDA 12.4``. Values without one follow the backend: ``cupy-nvrtc 13.6.0``.
    optional : bool
        Whether the first records lack the axis. A record without its key has no value.
    """

    key: str
    title: str
    side: Literal["row", "column"]
    value: Callable[[Cell], str]
    about: str
    kind: Literal["name", "word", "backend", "version", "release", "target"] = "name"
    filter: bool = False
    prefix: str = ""
    optional: bool = False

    def label(self, value: str) -> str:
        """Return a value in the form of headings: ``CUDA 12.4, headers 12.6``, ``CUDA 12.9, bundled``.

        An empty value stays empty.
        """
        if self.key == "toolkit" and value:
            return titled_toolkit(value)
        return f"{self.prefix}{value}" if self.prefix and value else value

    def to_json(self) -> dict[str, Any]:
        """Return the axis in the form that the page's script reads."""
        names = ("key", "title", "side", "about", "kind", "filter", "prefix", "optional")
        return {name: getattr(self, name) for name in names}


AXES = (
    Axis(
        key="topic",
        title="topic",
        side="row",
        value=lambda cell: cell.case.topic,
        about="topic of the case",
        kind="word",
        filter=True,
    ),
    Axis(key="case", title="case", side="row", value=lambda cell: cell.case.name, about="name of the case"),
    Axis(
        key="variant",
        title="variant",
        side="row",
        value=lambda cell: cell.variant.name,
        about="the case's parameters",
    ),
    Axis(
        key="backend",
        title="backend",
        side="column",
        value=lambda cell: cell.toolchain.backend,
        about="way to compile",
        kind="backend",
        filter=True,
    ),
    Axis(
        key="library",
        title="version",
        side="column",
        value=lambda cell: cell.toolchain.library,
        about="version of the library behind the backend",
        kind="version",
        filter=True,
    ),
    Axis(
        key="toolkit",
        title="CUDA",
        side="column",
        value=lambda cell: str(cell.toolchain.toolkit),
        about="CUDA release",
        kind="release",
        filter=True,
        prefix="CUDA ",
    ),
    Axis(
        key="host_compiler",
        title="host compiler",
        side="column",
        value=lambda cell: cell.toolchain.host.name,
        about="what nvcc hands the host's half to",
        filter=True,
        optional=True,
    ),
    Axis(
        key="target",
        title="target",
        side="column",
        value=lambda cell: str(cell.target),
        about="architecture, such as sm_80",
        kind="target",
        filter=True,
    ),
)
"""Every axis. Records, tables, exports and the page's script follow this order.

Targets divide the groups of the other columns.
"""

AXIS: Mapping[str, Axis] = {axis.key: axis for axis in AXES}
"""The axes by key."""

ROWS = tuple(axis.key for axis in AXES if axis.side == "row")
"""Keys of rows: topic, case, variant."""

PROGRAM = tuple(key for key in ROWS if key != "topic")
"""Keys of a row, the case first. The case determines the topic."""

TOOLCHAIN = tuple(axis.key for axis in AXES if axis.side == "column" and axis.key != "target")
"""Keys of a group of columns: backend, library, toolkit. Targets divide a group."""

COLUMNS = (*TOOLCHAIN, "target")
"""Keys of columns."""

PLACE = (*PROGRAM, *COLUMNS)
"""Keys that identify a cell."""

FIRST = tuple(key for key in PLACE if not AXIS[key].optional)
"""Keys of the first records. Links to cells with no other keys contain only these and stay valid."""

FURTHER = tuple(key for key in PLACE if key not in ("case", "variant", "backend", "library", "toolkit", "target"))
"""Keys that analyses do not name. Analyses compare and fold only cells with equal values of all of them."""


def place_of(cell: Mapping[str, Any], keys: tuple[str, ...] = PLACE) -> tuple[str, ...]:
    """Return the place of a record, a planned cell or a row of a table, by some of the keys.

    Missing keys give empty texts.
    """
    return tuple(map(cell.get, keys, repeat("")))


def labels(values: Iterable[str], keys: Iterable[str]) -> list[str]:
    """Return values in the form of headings, without empty values."""
    found = (AXIS[key].label(value) for key, value in zip(keys, values, strict=True))
    return [label for label in found if label]


def program_of(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Return the case of a cell, and the variant in the form that identifies its row."""
    case, *rest = place_of(cell, PROGRAM)
    return case, _row_label(*rest)


@lru_cache(maxsize=4096)
def _row_label(*rest: str) -> str:
    return " ".join(labels(rest, PROGRAM[1:]))


_BACKENDS = tuple(BACKENDS)


@dataclass(frozen=True, order=True)
class ToolchainColumn:
    """A group of columns: backend, library version, toolkit and the other keys in `harness.matrix.axes.TOOLCHAIN`.

    Parameters
    ----------
    values : tuple of str
        The value of each key in `harness.matrix.axes.TOOLCHAIN`.
    """

    values: tuple[str, ...]

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> ToolchainColumn:
        """Return the group of a record, a planned cell or a row of a table."""
        return cls(place_of(cell, TOOLCHAIN))

    @property
    def tool(self) -> str:
        """``cupy-nvrtc 13.6.0``."""
        return " ".join(self._labels(prefixed=False))

    @property
    def releases(self) -> str:
        """``CUDA 12.4, headers 12.6``."""
        return ", ".join(self._labels(prefixed=True))

    @property
    def label(self) -> str:
        """``cupy-nvrtc 13.6.0, CUDA 12.4``."""
        return f"{self.tool}, {self.releases}"

    def to_json(self) -> dict[str, str]:
        """Return the values by key."""
        return dict(zip(TOOLCHAIN, self.values, strict=True))

    def _labels(self, *, prefixed: bool) -> list[str]:
        return _labels(self.values, prefixed)


@cache
def _labels(values: tuple[str, ...], prefixed: bool) -> list[str]:
    """Return the labels of a toolchain's axes with a prefix, or of the axes without one."""
    chosen = {key: value for key, value in zip(TOOLCHAIN, values, strict=True) if bool(AXIS[key].prefix) is prefixed}
    return labels(chosen.values(), chosen)


def ranks(cells: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], tuple[int, int]]:
    """Return a sort key for these cells, by the order of the matrix.

    The key looks up places instead of comparing them: many cells have few distinct places, and versions compare slowly.
    """
    pairs = {(place_of(cell, ROWS), place_of(cell, COLUMNS)) for cell in cells}
    rows = {key: place for place, key in enumerate(sorted({row for row, _ in pairs}, key=lambda row: row_key(*row)))}
    columns = sorted({column for _, column in pairs}, key=lambda column: column_key(*column))
    order = {key: place for place, key in enumerate(columns)}
    return lambda cell: (rows[place_of(cell, ROWS)], order[place_of(cell, COLUMNS)])


@lru_cache(maxsize=16_384)
def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a name. Numbers in the text sort as numbers."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", text)
    )


@cache
def target_key(target: str) -> tuple[int, bool, int, str]:
    """Return the sort key of a target: vendor, real before virtual, compute capability, suffix."""
    return Target.parse(target).sort_key


def is_real(target: str) -> bool:
    """Return whether a target is a real architecture."""
    return not Target.parse(target).virtual


def axis_key(key: str) -> Callable[[str], Any]:
    """Return the sort key for the values of an axis."""
    return _KEYS[AXIS[key].kind]


def place_key(keys: Iterable[str], values: Iterable[str]) -> tuple[Any, ...]:
    """Return the sort key of a place: each value by the kind of its axis, the first axis first."""
    return tuple(axis_key(key)(value) for key, value in zip(keys, values, strict=True))


def row_key(*row: str) -> tuple[Any, ...]:
    """Return the sort key of a row, from a value for each key in `harness.matrix.axes.ROWS`.

    Numbers in names sort as numbers.
    """
    return place_key(ROWS, row)


def column_key(*column: str) -> tuple[Any, ...]:
    """Return the sort key of a column, from a value for each key in `harness.matrix.axes.COLUMNS`.

    Known backends come first, then versions by PEP 440, then targets as CUDA orders them.
    """
    return place_key(COLUMNS, column)


def toolchain_key(toolchain: ToolchainColumn) -> tuple[Any, ...]:
    """Return the sort key of a group of columns."""
    return place_key(TOOLCHAIN, toolchain.values)


def backend_key(name: str) -> tuple[int, str]:
    """Return the sort key of a backend: listed backends in their order, then unknown ones."""
    return (_BACKENDS.index(name) if name in BACKENDS else len(_BACKENDS), name)


def release_key(toolkit: str) -> tuple[Any, ...]:
    """Return the sort key of a toolkit: by release, then by the release of the headers."""
    release, _, headers = toolkit.partition("+headers")
    return (version_key(release), version_key(headers or release))


def fold_targets(chosen: Iterable[str], axis: Sequence[str]) -> str:
    """Return targets as ranges of the axis: ``sm_80–sm_90, sm_100``. No other target of the axis is within a range.

    Parameters
    ----------
    chosen : iterable of str
        The targets to spell.
    axis : sequence of str
        All targets requested from the toolchain, in order.
    """
    return _fold(frozenset(chosen), tuple(axis))


@cache
def _fold(chosen: frozenset[str], axis: tuple[str, ...]) -> str:
    parts: list[str] = []
    kinds: dict[str, list[str]] = {}
    for item in axis:
        kinds.setdefault(Target.parse(item).kind, []).append(item)
    # A range never goes from real to virtual architectures.
    for items in kinds.values():
        for names in consecutive(chosen, items):
            parts += [spell(names, whole=2, to="–")]
    return ", ".join(parts)


def spell_targets(targets: Iterable[str]) -> str:
    """Return tried targets, in ranges that contain no other known target: ``sm_75, sm_80``.

    Many ranges become ``7 of sm_52 to sm_120``. As on the command line, a range contains targets without a suffix.
    """
    groups: dict[tuple[Vendor, str, bool], list[str]] = {}
    for target in map(Target.parse, sorted(set(targets), key=target_key)):
        groups.setdefault((target.vendor, target.kind, bool(target.suffix)), []).append(str(target))
    spelled = []
    for (vendor, kind, suffix), group in groups.items():
        known = [str(each) for each in vendor.targets if each.kind == kind and bool(each.suffix) == suffix]
        spelled.append(spell_tried(group, known, target_key, to="–"))
    return ", ".join(spelled)


@cache
def version_key(text: str) -> tuple[Any, ...]:
    """Return the sort key of a version, by PEP 440. Other texts come first, and ``12.4@local`` follows ``12.4``."""
    number, _, place = text.partition("@")
    try:
        return (1, _ordered(Version(number)), place)
    except InvalidVersion:
        return (0, (), text)


def _ordered(version: Version) -> tuple[Any, ...]:
    """Return a version as numbers and texts in the same order: millions of comparisons of `Version` itself take seconds."""
    release = version.release
    while release and not release[-1]:
        release = release[:-1]
    final = (0,) if version.dev is not None and version.post is None else (2,)
    local = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in (version.local or "").split(".")]
    return (
        version.epoch,
        release,
        (1, *version.pre) if version.pre else final,
        -1 if version.post is None else version.post,
        (1,) if version.dev is None else (0, version.dev),
        tuple(local) if version.local else (),
    )


_KEYS: Mapping[str, Callable[[str], Any]] = {
    "name": natural_key,
    "word": natural_key,
    "number": float,
    "backend": backend_key,
    "version": version_key,
    "release": release_key,
    "target": target_key,
}
"""Sort keys of a value by the kind of its axis or parameter."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the matrix.

    Parameters
    ----------
    program : str
        Case and variant: ``wmma/fragments[shape=m16n16k8]``.
    toolchain : str
        Backend with its version, toolkit and the other values that identify it.
    cells : Mapping[str, Mapping]
        Records by target.
    """

    program: str
    toolchain: str
    cells: Mapping[str, Mapping[str, Any]]


def rows_of(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return the rows in the order of the matrix, with the texts of the records."""
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for record in sorted(records, key=_order):
        case, variant = program_of(record)
        key = (f"{case}[{variant}]" if variant else case, _toolchain(record))
        found.setdefault(key, {})[record["target"]] = record
    return [Row(program=program, toolchain=toolchain, cells=cells) for (program, toolchain), cells in found.items()]


def targets_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the targets of the records, as CUDA orders them."""
    return sorted({record["target"] for record in records}, key=target_key)


def is_virtual(target: str) -> bool:
    """Return whether a target is a virtual architecture."""
    return Target.parse(target).virtual


def short_target(target: str) -> str:
    """Return the short name of a target: ``80``, ``90a``, ``c80`` for a virtual architecture.

    A target whose vendor has no short form keeps its name: ``gfx90a``.
    """
    known = Target.parse(target)
    if not known.vendor.short:
        return target
    return f"c{known.number}" if known.virtual else known.number


def _order(record: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = (*PROGRAM, *TOOLCHAIN)
    return place_key(keys, place_of(record, keys))


def _toolchain(record: Mapping[str, Any]) -> str:
    values = zip(TOOLCHAIN, place_of(record, TOOLCHAIN), strict=True)
    return " ".join(
        named_toolkit(value).replace("CUDA", "cuda") if key == "toolkit" else f"{AXIS[key].prefix.lower()}{value}"
        for key, value in values
        if value
    )


_PAIR = r"([A-Za-z_][A-Za-z0-9_]*)=([^,=]*)"
_PAIRS = re.compile(_PAIR)
_WHOLE = re.compile(rf"{_PAIR}(?:,{_PAIR})*")
_OPTION = re.compile(rf"(?:^| )--library={_PAIR.replace(',', ' ')}(?= |$)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
_RELEASE = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of any cases.

    Parameters
    ----------
    key : str
        Its name.
    kind : str
        The kind of its values, for ordering: ``number``, ``version`` (of a header library, for instance), ``word``.
    values : tuple of str
        The values, in order.
    library : bool
        Whether it is the release of a header library.
    """

    key: str
    kind: Literal["number", "version", "word"]
    values: tuple[str, ...]
    library: bool

    @property
    def sort_key(self) -> Callable[[str], Any]:
        """Sort key of a value."""
        return _KEYS[self.kind]

    def label(self, value: str) -> str:
        """Return the label of a value: ``bytes=49156``, ``cutlass 4.2.0``."""
        return f"{self.key}{' ' if self.library else '='}{value}"

    def to_json(self) -> dict[str, Any]:
        """Return the parameter in the form that the page's script reads, like an axis (`harness.matrix.axes.Axis`)."""
        return {
            "key": self.key,
            "title": self.key,
            "side": "row",
            "about": "release of the header library" if self.library else "parameter of cases",
            "kind": self.kind,
            "filter": True,
            "prefix": self.label(""),
            "library": self.library,
        }


@lru_cache(maxsize=4096)
def parameters_of(variant: str) -> Mapping[str, str]:
    """Return the parameters in a variant's name by name.

    The options of a program without a case give its header libraries.
    """
    if _WHOLE.fullmatch(variant):
        return dict(_PAIRS.findall(variant))
    return {name: value for name, value in _OPTION.findall(variant) if name in LIBRARIES}


def parameters(variants: Iterable[str]) -> tuple[Parameter, ...]:
    """Return every parameter of some variants: header libraries first, then by name."""
    values: dict[str, set[str]] = {}
    for variant in set(variants):
        for name, value in parameters_of(variant).items():
            values.setdefault(name, set()).add(value)
    names = sorted(values, key=lambda name: (name not in LIBRARIES, name))
    return tuple(_parameter(name, values[name]) for name in names)


def _parameter(name: str, values: set[str]) -> Parameter:
    library = name in LIBRARIES
    kind: Literal["number", "version", "word"] = "word"
    if library or all(map(_RELEASE.fullmatch, values)):
        kind = "version"
    if not library and all(map(_NUMBER.fullmatch, values)):
        kind = "number"
    return Parameter(key=name, kind=kind, values=tuple(sorted(values, key=_KEYS[kind])), library=library)


def matrix_link(*, across: str = "", **values: str | Sequence[str]) -> str:
    """Return the address of the matrix, filtered by one or several values of each name.

    `assets/address.js` reads it.
    """
    parts = [_chosen(name, [of] if isinstance(of, str) else of) for name, of in values.items() if of]
    link = f"matrix.html#q={quote_plus(' and '.join(parts), safe='/:,.=()')}"
    return f"{link}&across={across}" if across else link


def _chosen(name: str, values: Sequence[str]) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{name} == {texts[0]}" if len(texts) == 1 else f"{name} in ({', '.join(texts)})"


def cell_link(cell: Mapping[str, Any]) -> str:
    """Return the address of a cell in the matrix, as `assets/matrix.js` spells it."""
    further = [key for key in PLACE if key not in FIRST]
    keys = PLACE if any(cell.get(key) for key in further) else FIRST
    parts = [str(part).replace("%", "%25").replace(";", "%3B") for part in place_of(cell, keys)]
    return f"matrix.html#cell={quote_plus(';'.join(parts), safe='/:;,.=@')}"
