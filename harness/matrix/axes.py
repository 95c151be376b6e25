"""The axes of the matrix: the keys that separate cells, in display order.

Everything that lays cells out follows from `AXES`: columns of tables and histories, plans, exports, the pages, the filters and the conditions of
the page's script. A new axis is an entry here and a key of the same name in `harness.records.record`, which says what records hold.

Parameters of variants and header libraries are dimensions of their own: ``bytes=49156,form=static`` and ``cutlass=4.2.0`` are parts of the variant's
name, which identifies a cell. Pages filter and group by each of them, and support statements speak of them.
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
        Key of records, column of tables.
    title : str
        What headings call it.
    side : str
        ``row``: goes down the matrix; ``column``: goes across.
    value : callable
        What a cell has of it, for records and plans.
    about : str
        What it is, in a few words: the page says so where it completes conditions.
    kind : str
        The kind of its values, for ordering and search: ``name`` (found by a part of it), ``word`` (found as a whole), ``backend``
        (in the order of `harness.backends.BACKENDS`), ``version``, ``release`` (of CUDA, maybe with headers of another), ``target``.
    filter : bool
        Whether the page has a filter for it.
    prefix : str
        The prefix of a value in headings: ``CUDA 12.4``. Values without one follow the backend: ``cupy-nvrtc 13.6.0``.
    optional : bool
        Whether it came after the first records: those without its key have no value of it.
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
        """A value as headings have it: ``CUDA 12.4, headers 12.6``, ``CUDA 12.9, bundled``; empty where there is none."""
        if self.key == "toolkit" and value:
            return titled_toolkit(value)
        return f"{self.prefix}{value}" if self.prefix and value else value

    def to_json(self) -> dict[str, Any]:
        """The axis as the page's script needs it."""
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
"""Every axis. Records, tables, exports and the page's script follow this order; targets divide what the other columns make."""

AXIS: Mapping[str, Axis] = {axis.key: axis for axis in AXES}
"""Each by its key."""

ROWS = tuple(axis.key for axis in AXES if axis.side == "row")
"""Keys of what goes down: topic, case, variant."""

PROGRAM = tuple(key for key in ROWS if key != "topic")
"""Keys of a row, its case first; its topic follows from its case."""

TOOLCHAIN = tuple(axis.key for axis in AXES if axis.side == "column" and axis.key != "target")
"""Keys of a group of columns, which the targets divide: backend, library, toolkit."""

COLUMNS = (*TOOLCHAIN, "target")
"""Keys of what goes across."""

PLACE = (*PROGRAM, *COLUMNS)
"""Keys that tell a cell from every other one."""

FIRST = tuple(key for key in PLACE if not AXIS[key].optional)
"""Those of the first records: links to cells that have nothing else have only these, and hold for ever."""

FURTHER = tuple(key for key in PLACE if key not in ("case", "variant", "backend", "library", "toolkit", "target"))
"""Keys that analyses do not know by name: they compare and fold only cells that have the same of them all."""


def place_of(cell: Mapping[str, Any], keys: tuple[str, ...] = PLACE) -> tuple[str, ...]:
    """The place of a record, a planned cell or a row of a table, by some of the keys; empty for missing keys."""
    return tuple(map(cell.get, keys, repeat("")))


def labels(values: Iterable[str], keys: Iterable[str]) -> list[str]:
    """Values as headings have them, without the empty ones."""
    found = (AXIS[key].label(value) for key, value in zip(keys, values, strict=True))
    return [label for label in found if label]


def program_of(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Case of a cell, and what else tells its row from others, as readers see it: its variant."""
    case, *rest = place_of(cell, PROGRAM)
    return case, _row_label(*rest)


@lru_cache(maxsize=4096)
def _row_label(*rest: str) -> str:
    return " ".join(labels(rest, PROGRAM[1:]))


_BACKENDS = tuple(BACKENDS)


@dataclass(frozen=True, order=True)
class ToolchainColumn:
    """Backend, library version and toolkit, and whatever else `harness.matrix.axes` counts among them: one group of columns.

    Parameters
    ----------
    values : tuple of str
        What it has of each of `harness.matrix.axes.TOOLCHAIN`.
    """

    values: tuple[str, ...]

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> ToolchainColumn:
        """The order of a record, a planned cell or a row of a table."""
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
        """Each value by its key."""
        return dict(zip(TOOLCHAIN, self.values, strict=True))

    def _labels(self, *, prefixed: bool) -> list[str]:
        return _labels(self.values, prefixed)


@cache
def _labels(values: tuple[str, ...], prefixed: bool) -> list[str]:
    """Labels of those axes of a toolchain that have a prefix, or of those that have none."""
    chosen = {key: value for key, value in zip(TOOLCHAIN, values, strict=True) if bool(AXIS[key].prefix) is prefixed}
    return labels(chosen.values(), chosen)


def ranks(cells: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], tuple[int, int]]:
    """Sorting key for these cells, by the order of the matrix.

    Places are looked up and not compared: among many cells there are few different ones, and versions compare slowly.
    """
    pairs = {(place_of(cell, ROWS), place_of(cell, COLUMNS)) for cell in cells}
    rows = {key: place for place, key in enumerate(sorted({row for row, _ in pairs}, key=lambda row: row_key(*row)))}
    columns = sorted({column for _, column in pairs}, key=lambda column: column_key(*column))
    order = {key: place for place, key in enumerate(columns)}
    return lambda cell: (rows[place_of(cell, ROWS)], order[place_of(cell, COLUMNS)])


@lru_cache(maxsize=16_384)
def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Order of names: the numbers in a text are taken for numbers."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", text)
    )


@cache
def target_key(target: str) -> tuple[int, bool, int, str]:
    """Order of targets: by vendor, real before virtual, then by compute capability, then by suffix."""
    return Target.parse(target).sort_key


def is_real(target: str) -> bool:
    """Return whether a target is a real architecture."""
    return not Target.parse(target).virtual


def axis_key(key: str) -> Callable[[str], Any]:
    """Sorting key of the values of an axis."""
    return _KEYS[AXIS[key].kind]


def place_key(keys: Iterable[str], values: Iterable[str]) -> tuple[Any, ...]:
    """Order of places: of each axis by its kind, the first counting most."""
    return tuple(axis_key(key)(value) for key, value in zip(keys, values, strict=True))


def row_key(*row: str) -> tuple[Any, ...]:
    """Order of rows, by a value of each of `harness.matrix.axes.ROWS`: by name, with numbers taken for numbers."""
    return place_key(ROWS, row)


def column_key(*column: str) -> tuple[Any, ...]:
    """Order of columns, by a value of each of `harness.matrix.axes.COLUMNS`: known backends first, then versions by PEP 440, then targets as CUDA orders them."""
    return place_key(COLUMNS, column)


def toolchain_key(toolchain: ToolchainColumn) -> tuple[Any, ...]:
    """Order of groups of columns."""
    return place_key(TOOLCHAIN, toolchain.values)


def backend_key(name: str) -> tuple[int, str]:
    """Order of backends: as they are listed, then those that are not known."""
    return (_BACKENDS.index(name) if name in BACKENDS else len(_BACKENDS), name)


def release_key(toolkit: str) -> tuple[Any, ...]:
    """Order of toolkits: by release, then by that of the headers."""
    release, _, headers = toolkit.partition("+headers")
    return (version_key(release), version_key(headers or release))


def fold_targets(chosen: Iterable[str], axis: Sequence[str]) -> str:
    """Targets as ranges of the axis: ``sm_80–sm_90, sm_100`` where nothing of the axis lies between.

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
    """Tried targets, in ranges that contain no other known one: ``sm_75, sm_80``; many such ranges as ``7 of sm_52 to sm_120``.

    As on the command line, a range is of targets without a suffix.
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
    """Order of versions: by PEP 440, after what is no version; ``12.4@local`` follows ``12.4``."""
    number, _, place = text.partition("@")
    try:
        return (1, _ordered(Version(number)), place)
    except InvalidVersion:
        return (0, (), text)


def _ordered(version: Version) -> tuple[Any, ...]:
    """A version as numbers and texts in the same order: millions of comparisons of `Version` itself take seconds."""
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
"""Sorting key of a value by the kind of its axis or parameter."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the matrix.

    Parameters
    ----------
    program : str
        Case and variant: ``wmma/fragments[shape=m16n16k8]``.
    toolchain : str
        Backend with its version, toolkit and whatever else tells it from others.
    cells : Mapping[str, Mapping]
        Records by target.
    """

    program: str
    toolchain: str
    cells: Mapping[str, Mapping[str, Any]]


def rows_of(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The lines in the order of the matrix; texts are as the records have them."""
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for record in sorted(records, key=_order):
        case, variant = program_of(record)
        key = (f"{case}[{variant}]" if variant else case, _toolchain(record))
        found.setdefault(key, {})[record["target"]] = record
    return [Row(program=program, toolchain=toolchain, cells=cells) for (program, toolchain), cells in found.items()]


def targets_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The targets of the records, as CUDA orders them."""
    return sorted({record["target"] for record in records}, key=target_key)


def is_virtual(target: str) -> bool:
    """Return whether a target is a virtual architecture."""
    return Target.parse(target).virtual


def short_target(target: str) -> str:
    """``80``, ``90a``; ``c80`` for the virtual architecture; ``gfx90a`` where the vendor has no short form."""
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
    """A parameter, whatever cases have it.

    Parameters
    ----------
    key : str
        Its name.
    kind : str
        The kind of its values, for ordering: ``number``, ``version`` (of a header library, for instance), ``word``.
    values : tuple of str
        In order.
    library : bool
        Whether it is the release of a header library.
    """

    key: str
    kind: Literal["number", "version", "word"]
    values: tuple[str, ...]
    library: bool

    @property
    def sort_key(self) -> Callable[[str], Any]:
        """Sorting key of a value."""
        return _KEYS[self.kind]

    def label(self, value: str) -> str:
        """``bytes=49156``, ``cutlass 4.2.0``."""
        return f"{self.key}{' ' if self.library else '='}{value}"

    def to_json(self) -> dict[str, Any]:
        """The parameter as the page's script needs it, like an axis (`harness.matrix.axes.Axis`)."""
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
    """Parameters by name, out of a variant's name; of the options of a program without a case its header libraries."""
    if _WHOLE.fullmatch(variant):
        return dict(_PAIRS.findall(variant))
    return {name: value for name, value in _OPTION.findall(variant) if name in LIBRARIES}


def parameters(variants: Iterable[str]) -> tuple[Parameter, ...]:
    """Every parameter of some variants: header libraries first, then by name."""
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
    """Address of the matrix, filtered by one or several values of each name; what `assets/address.js` reads."""
    parts = [_chosen(name, [of] if isinstance(of, str) else of) for name, of in values.items() if of]
    link = f"matrix.html#q={quote_plus(' and '.join(parts), safe='/:,.=()')}"
    return f"{link}&across={across}" if across else link


def _chosen(name: str, values: Sequence[str]) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{name} == {texts[0]}" if len(texts) == 1 else f"{name} in ({', '.join(texts)})"


def cell_link(cell: Mapping[str, Any]) -> str:
    """Address of a cell in the matrix, as `assets/matrix.js` spells it."""
    further = [key for key in PLACE if key not in FIRST]
    keys = PLACE if any(cell.get(key) for key in further) else FIRST
    parts = [str(part).replace("%", "%25").replace(";", "%3B") for part in place_of(cell, keys)]
    return f"matrix.html#cell={quote_plus(';'.join(parts), safe='/:;,.=@')}"
