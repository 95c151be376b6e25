"""Cells of a results.parquet, claims about the cells, and the rules that decide whether a claim is false.

A claim is one assertion of a statement. Its keys in JSON are those of `Claim`; `check_statements.py` has an example.

1. A change along an axis requires two cells that differ only in that axis. One of them has the claimed value.
2. "never" has a count, or covers every release that supports the target and that the program is applicable to.
3. A range contains only values that were tried and have its outcome. "only" excludes all other values.
4. "runs" requires a launched kernel; a cell without a launch "builds".
5. "never" for a GPU covers all of its targets.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import pandas as pd

HEADERS = ("cccl", "cutlass")
HOSTS = ("gcc", "clang", "glibc")
AXES = ("version", "cuda", "target")
ITSELF = ""
"""Case of statements about the architecture itself."""

_TRIED = frozenset(("built", "rejected", "crashed", "timed_out"))
_LAUNCHED = frozenset(("launch", "verify"))
_UNKNOWN_TARGET = re.compile(
    "invalid value for --gpu-architecture|Unsupported gpu architecture|'sm_\\w+' is not defined for option|Cannot find option named 'sm_\\w+'"
)
_COMPILERS = ("nvrtc", "nvcc", "ptxas", "nvvm", "nvjitlink", "cuda_bindings")
_PARTS = (*_COMPILERS, "host_compiler")
_LIBRARY_PARTS = (*_PARTS, "numba", "python")
"""Parts of a toolchain that decide an outcome. A library's own dependencies are omitted: NumPy and llvmlite follow the release. NVRTC and
nvcc do not use Python, so installed packages are no part of them."""

PARTS_NAMED = ("numba",)
"""Parts that a statement may name as changed together with the library."""

Range = tuple[str | None, str | None]


@cache
def order(value: str) -> tuple[tuple[int, Any], ...]:
    """Return the sort key of a version or a target on its axis."""
    # https://llvm.org/docs/AMDGPUUsage.html#processors: the last two digits are minor version and stepping, in hexadecimal.
    if amd := re.fullmatch(r"gfx(\d+)([0-9a-f])([0-9a-f])", value):
        return ((2, int(amd[1])), (2, int(amd[2], 16)), (2, int(amd[3], 16)))
    parts = re.findall(r"\d+|[a-z]+", value.removeprefix("sm_"))
    return (*((1, int(part)) if part.isdigit() else (0, part) for part in parts), (0, "~" if "." in value else ""))


def inside(value: str, ranges: Iterable[Range]) -> bool:
    """Return whether one of the ranges contains the value."""
    return any(
        (low is None or order(low) <= order(value)) and (high is None or order(value) <= order(high))
        for low, high in ranges
    )


@dataclass(frozen=True, eq=False)
class Cell:
    """A record of the Parquet file; `outcome` is ``works``, ``builds``, ``fails``, or empty without a compiler's answer."""

    id: str
    case: str
    variant: str
    backend: str
    tool: str
    of: str
    version: str
    cuda: str
    target: str
    status: str
    outcome: str
    parts: Mapping[str, str]
    unlinked: bool = False

    @property
    def holds(self) -> bool:
        return self.outcome in ("works", "builds")

    def others(self, axis: str) -> tuple[str, ...]:
        """Return the values of the other axes."""
        return tuple(getattr(self, name) for name in AXES if name != axis)


def differ_alone(one: Cell, other: Cell, axis: str, named: Sequence[str] = ()) -> bool:
    """Return whether two cells of a program and tool differ in one axis only. Toolchain parts that follow the axis, or are in `named`, may differ."""
    moved = {"cuda": _COMPILERS, "version": ("host_compiler",) if one.of in HOSTS else () if one.of else (one.backend, "cuda_bindings")}.get(axis, ())  # fmt: skip
    parts = (part for part in one.parts.keys() & other.parts.keys() if part not in (*moved, *named))
    same = (one.case, one.variant, one.tool, one.of) == (other.case, other.variant, other.tool, other.of)
    return (
        same
        and getattr(one, axis) != getattr(other, axis)
        and one.others(axis) == other.others(axis)
        and all(one.parts[part] == other.parts[part] for part in parts)
    )


@dataclass(frozen=True)
class Subject:
    """The subject of a statement. `tool` is the backend with its fixed parts; `version` is a release of `of`, a header library or host compiler."""

    case: str
    variants: tuple[str, ...]
    tool: str
    of: str
    targets: tuple[str, ...]
    gpu: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """An assertion of a statement.

    `says` is ``in`` (the outcome `holds` inside `ranges` and, with `only`, the opposite outcome outside), ``all``, ``none``, ``silent``,
    ``untried``, ``unlinked`` (cells of these values are built and not linked), ``tried`` (exactly these values; exactly `others` values
    if it is a number), ``with`` (works with `ranges`, not with `against`) or ``count``. Other claims cover the ranges in `exempt`.
    """

    says: str
    axis: str = ""
    ranges: tuple[Range, ...] = ()
    holds: bool = True
    only: bool = False
    against: tuple[Range, ...] = ()
    exempt: tuple[Range, ...] = ()
    within: Mapping[str, tuple[Range, ...]] = field(default_factory=dict, hash=False)
    count: tuple[int, int] | None = None
    scoped: bool = False
    word: str = ""
    others: int | None = None
    moved: tuple[str, ...] = ()

    @property
    def positive(self) -> bool:
        """Return whether the claim asserts that something works."""
        return self.says in ("all", "with", "count") or (self.says == "in" and (self.holds or self.only))


@dataclass(frozen=True)
class Finding:
    """A false claim: its kind, the reason, and the cells that disprove it."""

    kind: str
    why: str
    cells: tuple[str, ...] = ()


class Cells:
    """The cells of a Parquet file by subject."""

    def __init__(self, table: pd.DataFrame) -> None:
        self.by_id: dict[str, Cell] = {}
        self.by_entry: dict[tuple[str, str, str], dict[str, list[Cell]]] = defaultdict(dict)
        self.universe: dict[str, set[str]] = defaultdict(set)
        self.knowing: dict[str, set[str]] = defaultdict(set)
        itself: dict[tuple[str, ...], Cell] = {}
        for row in table.to_dict("records"):
            cell = _cell_of(row)
            self.by_id[cell.id] = cell
            self._add(cell)
            self.universe["target"].add(cell.target)
            if cell.cuda:
                self.universe["cuda"].add(cell.cuda)
            self.universe[f"host {cell.of}" if cell.of in HOSTS else cell.of or cell.backend].add(cell.version)
            if not cell.of and (known := _knows(row, cell)) is not None:
                if known:
                    self.knowing[cell.target].add(cell.cuda)
                place = (cell.tool, cell.version, cell.cuda, cell.target)
                if place not in itself or (known and not itself[place].holds):
                    itself[place] = replace(
                        cell, case=ITSELF, variant="", outcome="builds" if known else "fails", parts={}
                    )
        for cell in itself.values():
            self._add(cell)

    def _add(self, cell: Cell) -> None:
        self.by_entry[cell.case, cell.tool, cell.of].setdefault(cell.variant, []).append(cell)

    def variants(self, case: str) -> list[str]:
        """Return the variants of a case, without header libraries."""
        return list(dict.fromkeys(rest for key, found in self.by_entry.items() if key[0] == case for rest in found))

    def entry(self, subject: Subject) -> Iterator[list[Cell]]:
        """Yield the cells of each variant, on every target."""
        found = self.by_entry.get((subject.case, subject.tool, subject.of), {})
        yield from (found.get(variant, []) for variant in subject.variants)

    def releases(self, axis: str, subject: Subject) -> set[str]:
        """Return every known value of an axis."""
        of = f"host {subject.of}" if subject.of in HOSTS else subject.of or subject.tool.split(" ")[0]
        return self.universe[of if axis == "version" else axis]


def _cell_of(row: Mapping[str, Any]) -> Cell:
    rest, of, version = [], "", ""
    for part in filter(None, row["variant"].split(",")):
        name, _, value = part.partition("=")
        if name in HEADERS and not of:
            of, version = name, value
        else:
            rest.append(part)
    toolchain, more = json.loads(row["toolchain_json"]), json.loads(row["more_json"])
    host, library = str(more.get("host_compiler") or ""), row["library"] or ""
    tool = [row["backend"]]
    if of:
        tool += filter(None, (library, host))
    elif host:
        of, _, version = host.partition("-")
        tool += filter(None, (library,))
    else:
        version = library
    named = {**toolchain["requested"].get("packages", {}), **toolchain["observed"]}
    # The release of a library with bundled tools determines its compilers.
    bundled = row["toolkit"].endswith("@bundled")
    parts = ("python",) if bundled else _PARTS if row["backend"] in ("nvrtc", "nvcc") else _LIBRARY_PARTS
    held = "works" if _LAUNCHED & set(json.loads(row["stages_json"])) else "builds"
    return Cell(
        id=row["cell"], case=row["case"], variant=",".join(rest), backend=row["backend"], tool=" ".join(tool), of=of, version=version,
        cuda="" if bundled else row["toolkit"], target=row["target"], status=row["status"],
        outcome=held if row["status"] == "built" else "fails" if row["status"] in _TRIED else "",
        parts={name: str(named[name]) for name in parts if named.get(name)},
        unlinked=row["status"] == "built" and any(note.startswith("not linked") for note in json.loads(row.get("notes_json") or "[]")),
    )  # fmt: skip


def _knows(row: Mapping[str, Any], cell: Cell) -> bool | None:
    """Return whether a cell's compiler supports the architecture; None if the cell does not show it."""
    said = f"{row['message'] or ''} {row['reason'] or ''} "
    if f" knows no {cell.target} " in said or (cell.outcome == "fails" and _UNKNOWN_TARGET.search(said)):
        return False
    if not cell.cuda and cell.outcome == "fails":
        # A library with its own CUDA: its front end may reject the program for every architecture.
        return None
    return True if cell.outcome else None


def check(claims: Sequence[Claim], subject: Subject, cells: Cells, *, least: int = 3) -> Iterator[Finding]:
    """Yield the errors in a statement's claims; `least` is the number of CUDA releases that a "never" without a count requires."""
    entries = [entry for entry in cells.entry(subject) if entry]
    if len(entries) < len(subject.variants):
        yield Finding("no such subject", f"no cell of {subject.tool} {subject.of} for some of {subject.variants}")
        return
    untried = {axis: [item for claim in claims if claim.says == "untried" and claim.axis == axis for item in claim.ranges] for axis in AXES}  # fmt: skip
    for claim in claims:
        for entry in entries:
            # A claim about targets covers all targets at once; any other claim covers each target of the statement.
            for target in ("",) if claim.axis == "target" else subject.targets:
                some = [cell for cell in entry if (not target or cell.target == target) and all(inside(getattr(cell, axis), found) for axis, found in claim.within.items())]  # fmt: skip
                yield from _check_claim(claim, some, subject, cells, untried, least)
    if any(claim.positive and claim.word == "runs" for claim in claims) and subject.case != ITSELF:
        held = [cell for entry in entries for cell in entry if cell.target in subject.targets and cell.holds]
        if held and not any(cell.outcome == "works" for cell in held):
            yield Finding("4 runs, for builds", "no cell has launched a kernel", (held[-1].id,))
    if any(claim.says == "none" and not claim.within for claim in claims) and subject.gpu:
        works = [cell for entry in entries for cell in entry if cell.target in subject.gpu and cell.holds]
        named = [item for claim in claims if claim.axis == "target" and claim.holds for item in claim.ranges]
        if works:
            noted = all(inside(cell.target, named) for cell in works)
            kind = f"5 never of a GPU, one of whose targets works{', which only the note tells' * noted}"
            yield Finding(kind, f"on {', '.join(subject.targets)}", _ids(works[-1:]))


def _check_claim(claim: Claim, some: Sequence[Cell], subject: Subject, cells: Cells, untried: Mapping[str, Sequence[Range]], least: int) -> Iterator[Finding]:  # fmt: skip
    tried = [cell for cell in some if cell.outcome]
    held = [cell for cell in tried if cell.holds]
    failed = [cell for cell in tried if not cell.holds]
    if claim.says == "silent":
        if tried:
            yield Finding("3 not tried, but tried", claim.word, _ids(tried))
        elif claim.word == "not applicable" and not any(cell.status == "unsupported" for cell in some):
            yield Finding("3 not applicable, without a cell", "", _ids(some))
        return
    if claim.says == "untried":
        if found := [cell for cell in tried if inside(getattr(cell, claim.axis), claim.ranges)]:
            yield Finding("3 untried, but tried", _spell(claim), _ids(found))
        return
    if claim.says == "unlinked":
        values = {cell.cuda for cell in held if cell.unlinked}
        ends = {end for found in claim.ranges for end in found}
        if not ends <= values or any(not inside(value, claim.ranges) for value in values):
            yield Finding("3 not linked, but not these", f"{_spell(claim)}, not {', '.join(sorted(values, key=order))}", _ids(held[-1:]))  # fmt: skip
        return
    if claim.says == "tried":
        values = {getattr(cell, claim.axis) for cell in tried}
        named = {value for value in cells.releases(claim.axis, subject) if inside(value, claim.ranges)}
        ends = {end for found in claim.ranges for end in found}
        outside = values - {value for value in values if inside(value, claim.ranges)}
        if outside or (claim.others is None and named - values) or (claim.others is not None and claim.others != len(values)) or not ends <= values:  # fmt: skip
            yield Finding("3 tried, but not these", f"{_spell(claim)}, not {', '.join(sorted(values, key=order))}", _ids(tried[-1:]))  # fmt: skip
        return
    if not tried:
        yield Finding("3 nothing tried", _spell(claim), _ids(some))
    elif claim.says == "all" and failed:
        yield Finding("3 works, but refused", claim.word, _ids(failed))
    elif claim.says == "none" and held:
        yield Finding("3 never, but builds", claim.word, _ids(held))
    elif claim.says == "none":
        yield from _check_never(claim, failed, some, cells, least)
    elif claim.says == "count" and claim.count != (len(held), len(tried)):
        yield Finding("2 another count", f"{claim.count}, not {len(held)} of {len(tried)}", _ids(tried))
    elif claim.says == "with":
        wrong = [cell for cell in failed if inside(getattr(cell, claim.axis), claim.ranges)]
        wrong += [cell for cell in held if inside(getattr(cell, claim.axis), claim.against)]
        if wrong:
            yield Finding("3 range with another outcome", _spell(claim), _ids(wrong))
        elif not any(differ_alone(one, other, claim.axis, claim.moved) for one in held for other in failed):
            yield Finding("1 change without a pair", _spell(claim), _ids([*held[-1:], *failed[-1:]]))
    elif claim.says == "in":
        yield from _check_ranges(claim, tried, subject, cells, untried)


def _check_never(
    claim: Claim, failed: Sequence[Cell], some: Sequence[Cell], cells: Cells, least: int
) -> Iterator[Finding]:
    """Yield violations of rule 2."""
    releases = {cell.cuda for cell in failed}
    if claim.count is not None:
        if claim.count != (0, len(failed)):
            yield Finding("2 another count", f"{claim.count}, not 0 of {len(failed)}", _ids(failed))
        versions = {cell.version for cell in failed}
        if claim.word == "never" and (
            (releases != {""} and len(releases) < least) or (versions != {""} and len(versions) < least)
        ):
            yield Finding(
                "2 never, from too few releases", f"CUDA {', '.join(releases)}; {len(versions)} versions", _ids(failed)
            )
        return
    # Releases that the program is not applicable to do not count.
    knowing = set().union(*(cells.knowing[cell.target] for cell in failed)) - (
        {cell.cuda for cell in some if cell.status == "unsupported"} - releases
    )
    if claim.scoped or (len(releases) >= least and knowing <= releases):
        return
    few = "one cell" if len(failed) == 1 else "one CUDA release" if len(releases) == 1 else "fewer CUDA releases than could be tried"  # fmt: skip
    yield Finding(f"2 never without a count, from {few}", f"0 of {len(failed)}: CUDA {', '.join(sorted(releases, key=order))}; {len(knowing)} could be tried", _ids(failed))  # fmt: skip


def _check_ranges(claim: Claim, tried: Sequence[Cell], subject: Subject, cells: Cells, untried: Mapping[str, Sequence[Range]]) -> Iterator[Finding]:  # fmt: skip
    """Yield violations of rules 1 and 3: outcomes inside and outside of ranges, untried values, and borders without a pair."""
    axis = claim.axis
    if axis == "target":
        # Ignore architectures of other vendors.
        vendors = {re.sub(r"\d.*", "", end) for low_high in claim.ranges for end in low_high if end}
        tried = [cell for cell in tried if re.sub(r"\d.*", "", cell.target) in vendors]
    by_value: dict[str, list[Cell]] = defaultdict(list)
    for cell in tried:
        by_value[getattr(cell, axis)].append(cell)
    # A target works if any version works; a release works if all cells work.
    some = any if axis == "target" else all
    outcome = {value: some(cell.holds for cell in of) for value, of in by_value.items()}
    said = {value: inside(value, claim.ranges) == claim.holds for value in outcome if not inside(value, claim.exempt)}
    for value, holds in said.items():
        if not claim.only and not inside(value, claim.ranges):
            continue
        wrong = [cell for cell in by_value[value] if cell.holds != holds]
        if wrong and (axis != "target" or outcome[value] != holds):
            kind = "3 range with another outcome" if inside(value, claim.ranges) else "3 only, but also elsewhere"
            yield Finding(kind, f"{_spell(claim)}: {value}", _ids(wrong))
            return
    closed = [(low, high) for low, high in claim.ranges if low is not None and high is not None and low != high]
    missing = sorted((value for value in cells.releases(axis, subject) if inside(value, closed) and value not in outcome), key=order)  # fmt: skip
    if missing:
        yield Finding("3 range over untried values", f"{_spell(claim)}: {', '.join(missing)}")
    # Borders with the ranges of other claims count, too.
    said = {value: inside(value, claim.ranges) == claim.holds for value in outcome}
    values = sorted(said, key=order)
    pairs = list(_pairs(tried, axis))
    for before, after in pairwise(values):
        if (
            said[before] == said[after]
            or (not claim.only and not inside(after, claim.ranges))
            or claim.others is not None
        ):
            continue
        fits = [
            (one, other)
            for one, other in pairs
            if (getattr(one, axis) == before or getattr(other, axis) == after)
            and order(getattr(one, axis)) <= order(before) < order(after) <= order(getattr(other, axis))
            and one.holds == said[before]
            and other.holds == said[after]
        ]
        where = f"{_spell(claim)}: between {before} and {after}"
        if not any(differ_alone(one, other, axis, claim.moved) for one, other in fits):
            shown = fits[0] if fits else (by_value[before][-1], by_value[after][-1])
            yield Finding(f"1 change without a pair{', other parts differ' if fits else ''}", where, _ids(shown))
        between = [value for value in cells.releases(axis, subject) if order(before) < order(value) < order(after)]
        unnamed = [value for value in between if value not in outcome and not inside(value, untried[axis])]
        if axis != "target" and unnamed:
            yield Finding("3 border over unnamed untried releases", f"{where}: {', '.join(sorted(unnamed, key=order))}")
    other = {"version": "cuda", "cuda": "version"}.get(axis, "")
    if other and not (axis == "version" and subject.of) and other not in claim.within:
        found = {getattr(cell, other) for cell in tried}
        if len(found) == 1 and found != {""}:
            what = "a library with one CUDA release" if axis == "version" else "CUDA with one release of the library"
            yield Finding(f"1 change of {what}, unnamed", f"{_spell(claim)}: {found.pop()} only", _ids(tried[-1:]))


def _pairs(tried: Sequence[Cell], axis: str) -> Iterator[tuple[Cell, Cell]]:
    """Yield neighbouring cells along an axis that are equal on the other axes."""
    groups: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in tried:
        groups[cell.others(axis)].append(cell)
    for group in groups.values():
        yield from pairwise(sorted(group, key=lambda cell: order(getattr(cell, axis))))


def shows_change(claim: Claim, pair: Sequence[str], cells: Cells) -> Iterator[Finding]:
    """Yield a finding unless the two named cells differ only in the axis and have different outcomes."""
    found = [cells.by_id.get(name) for name in pair]
    one, other = (*found, None, None)[:2]
    if one is None or other is None or not differ_alone(one, other, claim.axis, claim.moved) or not one.outcome or not other.outcome or one.holds == other.holds:  # fmt: skip
        yield Finding("1 evidence that shows no change", _spell(claim), tuple(pair))


def _ids(cells: Iterable[Cell]) -> tuple[str, ...]:
    return tuple(cell.id for cell in cells)


def _spell(claim: Claim) -> str:
    ranges = ", ".join(low if low == high and low else f"{low or '…'}–{high or '…'}" for low, high in claim.ranges)
    return f"{claim.axis} {'' if claim.holds else 'not '}{'only ' if claim.only else ''}{ranges}"
