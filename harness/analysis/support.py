"""Support statements: one sentence with version ranges for the cells of a variant and a backend.

``docs/analysis.md`` has the rules. A statement covers only tested cells: `Statement.outcome_of` returns the outcome of
every cell that the statement covers, and None for every other cell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise, product
from typing import Any, NamedTuple

import pandas as pd

from harness.analysis.frame import rows_of
from harness.diagnostics import one_line
from harness.matrix.axes import FURTHER, fold_targets, labels, place_key, spell_targets, target_key, version_key
from harness.matrix.marks import ENDINGS, KINDS
from harness.matrix.ranges import between, spell, spell_part, spell_tried
from harness.model import KNOWN_TARGETS, Target
from harness.model.cell import named_toolkit
from harness.records import at_stage
from harness.toolkits import RELEASES

AS_BUNDLED = "as bundled"
"""The toolkit of a library that bundles CUDA."""


class Point(NamedTuple):
    """The position of a cell within its statement. The toolkit is the compiler's."""

    library: str
    toolkit: str
    target: str


@dataclass(frozen=True, kw_only=True)
class SupportKey:
    """The subject of a statement.

    Parameters
    ----------
    topic, case, variant, backend : str
        The program and its compiler.
    headers : str
        The release of the headers, if it differs from the compiler's.
    further : tuple of str
        The other common values of its cells: one for each axis in `harness.matrix.axes.FURTHER`.
    """

    topic: str
    case: str
    variant: str
    backend: str
    headers: str = ""
    further: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TargetGroup:
    """Targets with the same outcome within a clause.

    Parameters
    ----------
    outcome : str
        The outcome (`harness.analysis.frame.outcome_of`).
    targets : tuple of str
        In order, at least one.
    message : str
        One of the most frequent messages; empty for built cells.
    messages : int
        Number of different messages (by fingerprint: names and numbers don't count).
    """

    outcome: str
    targets: tuple[str, ...]
    message: str = ""
    messages: int = 0


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A block of versions in which every target has one outcome.

    A clause covers every point of libraries x toolkits x targets, except the statement's `gaps` and `not_applicable`
    points.
    """

    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]
    parts: tuple[TargetGroup, ...]


@dataclass(frozen=True, kw_only=True)
class Holes:
    """Known versions between the tested ones that no cell of the subject tried."""

    libraries: tuple[str, ...] = ()
    toolkits: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One sentence and its cells.

    Parameters
    ----------
    subject : SupportKey
        The subject of the statement.
    clauses : tuple of Clause
        In the order of versions. Their blocks do not overlap.
    cells : tuple of str
        Ids of the covered cells.
    not_applicable : frozenset of Point
        Covered cells that are ``unsupported``, for instance because the toolkit does not support the architecture.
    gaps : frozenset of Point
        Untested points inside a clause's block. The sentence does not cover them.
    apart : frozenset of (str, str)
        Library and toolkit that were both tried, but never together.
    unknown : tuple of str
        Ids of requested cells without a compiler's answer: unavailable, harness_error, missing. Not covered.
    holes : Holes
        Untried versions and targets between tested ones.
    headline : str
        What builds and what fails, in English: ``cupy-jitify: up to 13.0.0 rejected at compile ("incomplete type");
        from 13.1.0 needs sm_80``. It contains compilers' messages: escape it in output.
    notes : tuple of str
        Short sentences about tested, inapplicable and untested points.
    """

    subject: SupportKey
    clauses: tuple[Clause, ...]
    cells: tuple[str, ...]
    not_applicable: frozenset[Point] = frozenset()
    gaps: frozenset[Point] = frozenset()
    apart: frozenset[tuple[str, str]] = frozenset()
    unknown: tuple[str, ...] = ()
    holes: Holes = field(default_factory=Holes)
    headline: str = ""
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Headline and notes."""
        return " ".join((f"{self.headline}.", *self.notes))

    @property
    def uniform(self) -> bool:
        """Return whether every applicable cell has the same outcome."""
        return len({part.outcome for clause in self.clauses for part in clause.parts}) <= 1

    @property
    def works_everywhere(self) -> bool:
        """Return whether every applicable cell was built."""
        return bool(self.clauses) and {part.outcome for clause in self.clauses for part in clause.parts} == {"built"}

    def outcome_of(self, library: str, toolkit: str, target: str) -> str | None:
        """Return the outcome of a cell according to the statement, or None outside of the statement."""
        point = Point(library, toolkit, target)
        if point in self.not_applicable:
            return "unsupported"
        return None if point in self.gaps else self._outcomes.get(point)

    @cached_property
    def _outcomes(self) -> dict[Point, str]:
        return {
            Point(library, toolkit, target): part.outcome
            for clause in self.clauses
            for part in clause.parts
            for library in clause.libraries
            for toolkit in clause.toolkits
            for target in part.targets
        }


Row = dict[str, str]
OutcomeGrid = dict[str, dict[str, Row]]


class Block(NamedTuple):
    """An unfinished clause: outcome by target for some versions of one axis (`outer`) times some of the other."""

    outer: list[str]
    inner: list[str]
    row: Row


def fold(grid: OutcomeGrid) -> list[Block]:
    """Fold the outer axis if whole tables agree, then the inner axis within each group."""
    groups: list[tuple[list[str], dict[str, Row]]] = []
    for outer in sorted(grid, key=version_key):
        if groups and _tables_agree(groups[-1][1], grid[outer]):
            groups[-1][0].append(outer)
        else:
            groups.append(([outer], {}))
        for inner, row in grid[outer].items():
            groups[-1][1].setdefault(inner, {}).update(row)
    blocks: list[Block] = []
    for members, rows in groups:
        first = len(blocks)
        for inner in sorted(rows, key=version_key):
            if len(blocks) > first and _rows_agree(blocks[-1].row, rows[inner]):
                blocks[-1].inner.append(inner)
                blocks[-1].row.update(rows[inner])
            else:
                blocks.append(Block(list(members), [inner], dict(rows[inner])))
    return blocks


def _tables_agree(one: dict[str, Row], other: dict[str, Row]) -> bool:
    """Compare shared versions of the other axis; without shared versions, each table must have one outcome."""
    both = one.keys() & other.keys()
    if both:
        return all(_rows_agree(one[version], other[version]) for version in both)
    pieces = _union(one), _union(other)
    return pieces[0] is not None and pieces[1] is not None and _rows_agree(pieces[0], pieces[1])


def _union(table: dict[str, Row]) -> Row | None:
    """Merge all rows, or return None if they contradict each other."""
    union: Row = {}
    for row in table.values():
        if any(union.get(target, outcome) != outcome for target, outcome in row.items()):
            return None
        union.update(row)
    return union


def _rows_agree(one: dict[str, str], other: dict[str, str]) -> bool:
    """Return whether two versions agree: the targets that both tried have the same outcome, and there is such a target."""
    both = one.keys() & other.keys()
    return bool(both) and all(one[target] == other[target] for target in both)


_LISTED = 6
_QUOTED = 100
_LONG_NAME = re.compile(r"['`][^'`]{40,}'")

PLAIN_TARGETS = tuple(str(target) for target in KNOWN_TARGETS if not target.suffix)
"""Every known target without a suffix, in order."""


def headline_of(statement: Statement) -> str:
    """Return phrases for what builds and what fails."""
    subject = statement.subject
    name = subject.backend + (f" with the headers of CUDA {subject.headers}" if subject.headers else "")
    name += "".join(f", {label}" for label in labels(subject.further, FURTHER))
    if not statement.clauses:
        return f"{name}: {KINDS['unsupported'].word + ' wherever it was tried' if statement.not_applicable else 'no results'}"
    libraries = _axis(clause.libraries for clause in statement.clauses)
    toolkits = _axis(clause.toolkits for clause in statement.clauses)
    clauses_text = []
    by_toolkit = _separates(statement.clauses, "libraries")
    by_library = _separates(statement.clauses, "toolkits")
    for clause in statement.clauses:
        library = "" if by_toolkit else _place(clause.libraries, libraries)
        toolkit = "" if by_library else _place(clause.toolkits, toolkits, "CUDA ")
        if library and toolkit:
            toolkit = f"with {_place(clause.toolkits, toolkits, 'CUDA ', open_ended=False)}"
        place = " ".join(filter(None, (library, toolkit)))
        clauses_text.append(f"{place}{': ' if place else ''}{_what(clause)}")
    if statement.works_everywhere:
        clauses_text = [ENDINGS["built"].verb]
    return f"{name}: {'; '.join(clauses_text)}"


def notes_of(statement: Statement) -> tuple[str, ...]:
    """Return phrases for tested, inapplicable and untested points."""
    notes = []
    tried: dict[str, set[str]] = {}
    for point in (*statement.not_applicable, *statement.gaps):
        tried.setdefault(point.toolkit, set()).add(point.library)
    for clause in statement.clauses:
        for toolkit in clause.toolkits:
            tried.setdefault(toolkit, set()).update(clause.libraries)
    axes = _Axes(
        libraries={name for names in tried.values() for name in names},
        targets=sorted(
            {point.target for point in statement.not_applicable}.union(
                *(part.targets for clause in statement.clauses for part in clause.parts)
            ),
            key=target_key,
        ),
        toolkits=set(tried),
    )
    if statement.clauses:
        libraries = [name for name in _axis(clause.libraries for clause in statement.clauses) if name]
        toolkits = _axis(clause.toolkits for clause in statement.clauses)
        targets = _targets(part for clause in statement.clauses for part in clause.parts)
        tested = [f"{statement.subject.backend} {_span(libraries)}"] if libraries else []
        tested += [named_toolkit(_span(toolkits))] if toolkits != [AS_BUNDLED] else []
        tested.append(fold_targets(targets, targets))
        notes.append(f"Tested: {', '.join(tested)}.")
    if statement.not_applicable:
        notes.append(f"Unsupported: {_points(statement.not_applicable, tried, axes)}.")
    if statement.apart:
        notes.append(f"Never tried together: {_pairs(statement.apart, axes)}.")
    gaps = [point for point in statement.gaps if (point.library, point.toolkit) not in statement.apart]
    if gaps:
        notes.append(f"Untested: {_points(gaps, tried, axes)}.")
    holes = statement.holes
    # The axis includes the tried values: no range of untried values contains a tried one.
    untested = (
        [f"{statement.subject.backend} {spell_tried(holes.libraries, axes.libraries, version_key)}"]
        if holes.libraries
        else []
    )
    untested += [named_toolkit(spell_tried(holes.toolkits, RELEASES, version_key))] if holes.toolkits else []
    untested += [spell_targets(holes.targets)] if holes.targets else []
    if untested:
        notes.append(f"Untested in between: {'; '.join(untested)}.")
    if statement.unknown:
        count = len(statement.unknown)
        notes.append(f"No result for {count} cell{'s' if count > 1 else ''} that should have been tried.")
    return tuple(notes)


def _separates(clauses: Sequence[Clause], other: str) -> bool:
    """Return whether one axis alone separates the clauses.

    Neighbors must share a version of the other axis. If both axes changed at once, the cause is unknown.
    """
    return all(set(getattr(one, other)) & set(getattr(two, other)) for one, two in pairwise(clauses))


def _what(clause: Clause) -> str:
    """Return the phrase for a clause: ``builds on sm_80–sm_120; rejected at compile on sm_70 and below``."""
    parts = sorted(clause.parts, key=lambda part: part.outcome != "built")
    if len(parts) == 1:
        return _verb(parts[0])
    axis = _targets(clause.parts)
    if len(parts) == 2 and parts[0].outcome == "built" and _is_threshold(parts[0].targets, axis):
        return f"needs {parts[0].targets[0]}, below it {_verb(parts[1])}"
    return ", ".join(f"{_verb(part)} on {fold_targets(part.targets, axis)}" for part in parts)


def _is_threshold(built: Sequence[str], axis: Sequence[str]) -> bool:
    """Return whether exactly the newer architectures of one kind are built."""
    kinds = {Target.parse(target).kind for target in axis}
    return len(kinds) == 1 and list(built) == list(axis[-len(built) :])


def _verb(part: TargetGroup) -> str:
    ending, _, stage = part.outcome.partition(" at ")
    text = at_stage(ENDINGS[ending].verb, stage)
    if part.message and ending != "compiled":
        others = f" and {part.messages - 1} more" if part.messages > 1 else ""
        message = _LONG_NAME.sub("'…'", part.message)  # Numba's kernels have names of 200 characters
        text += f' ("{one_line(message, _QUOTED)}"{others})'
    return text


def _place(chosen: Sequence[str], axis: Sequence[str], prefix: str = "", *, open_ended: bool = True) -> str:
    """Return versions as a range of the tested ones, or an empty string if all tested versions are chosen."""
    if len(chosen) == len(axis):
        return ""
    places = sorted(axis.index(value) for value in chosen)
    if places[-1] - places[0] != len(places) - 1:
        return prefix + ", ".join(axis[place] for place in places)
    if len(chosen) == 1 and not (open_ended and places[0] == len(axis) - 1):
        return prefix + chosen[0]
    values = [axis[place] for place in places]
    return spell_part(values, axis, prefix) if open_ended else prefix + spell(values)


class _Axes(NamedTuple):
    """All tried values of a statement, to keep ranges of some values from containing another tried value."""

    libraries: set[str]
    toolkits: set[str]
    targets: list[str]


def _points(points: Iterable[Point], tried: Mapping[str, set[str]], axes: _Axes) -> str:
    """Return points in words: ``sm_50–sm_70 with CUDA 13.0 and 13.5``.

    Libraries are named if the points do not cover all libraries that tried the toolkit.
    """
    libraries: dict[tuple[str, str], set[str]] = {}
    # The iteration order of a set differs between processes.
    for point in sorted(points, key=lambda point: target_key(point.target)):
        libraries.setdefault((point.toolkit, point.target), set()).add(point.library)
    by_toolkit: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (toolkit, target), names in libraries.items():
        named = () if names >= tried[toolkit] else tuple(sorted(names, key=version_key))
        by_toolkit.setdefault((toolkit, named), []).append(target)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (toolkit, named), targets in sorted(by_toolkit.items(), key=lambda item: version_key(item[0][0])):
        groups.setdefault((tuple(sorted(targets, key=target_key)), named), []).append(toolkit)
    texts = []
    for (chosen, named), toolkits in groups.items():
        versions = [_ranges(named, axes.libraries)] if any(named) else []
        versions += [named_toolkit(_ranges(toolkits, axes.toolkits))] if axes.toolkits != {AS_BUNDLED} else []
        texts.append(" with ".join(filter(None, (fold_targets(chosen, axes.targets), " and ".join(versions)))))
    rest = len(texts) - _LISTED
    return "; ".join([*texts[:_LISTED], f"and {rest} more of the kind"] if rest > 0 else texts)


def _ranges(versions: Collection[str], axis: Iterable[str]) -> str:
    return spell_tried(versions, axis, version_key, most=len(versions))


def _pairs(pairs: Iterable[tuple[str, str]], axes: _Axes) -> str:
    by_toolkit: dict[str, list[str]] = {}
    for library, toolkit in pairs:
        by_toolkit.setdefault(toolkit, []).append(library)
    groups: dict[frozenset[str], list[str]] = {}
    for toolkit, libraries in sorted(by_toolkit.items(), key=lambda item: version_key(item[0])):
        groups.setdefault(frozenset(libraries), []).append(toolkit)
    return "; ".join(
        f"{_ranges(libraries, axes.libraries)} and {named_toolkit(_ranges(toolkits, axes.toolkits))}"
        for libraries, toolkits in groups.items()
    )


def _targets(parts: Iterable[TargetGroup]) -> list[str]:
    return sorted({target for part in parts for target in part.targets}, key=target_key)


def _axis(values: Iterable[Sequence[str]]) -> list[str]:
    return sorted({value for versions in values for value in versions}, key=version_key)


def _span(versions: Sequence[str]) -> str:
    """Return versions in words: ``12.4``, ``11.8, 12.4 and 13.0``, or both ends with the count of many versions."""
    many = f" ({len(versions)} versions)" if len(versions) > _LISTED else ""
    return spell(versions, whole=_LISTED, last=" and ") + many


_PLACE = ("topic", "case", "variant", "backend", "headers")


def statements(table: pd.DataFrame) -> list[Statement]:
    """Return a statement for each case, variant and backend, in the order of the matrix."""
    libraries = {backend: list(part.unique()) for backend, part in table.groupby("backend")["library"]}
    columns = [*_PLACE, *FURTHER, "cell", "library", "release", "target", "outcome", "message", "reason", "diagnostics"]
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    names = len(_PLACE) + len(FURTHER)
    for row in rows_of(table, columns):
        found.setdefault(row[:names], []).append(row[names:])
    order = {place: number for number, place in enumerate(dict.fromkeys(place[:4] for place in found))}
    return [
        _statement(
            SupportKey(**dict(zip(_PLACE, place, strict=False)), further=place[len(_PLACE) :]),
            found[place],
            libraries[place[3]],
        )
        for place in sorted(
            found, key=lambda place: (order[place[:4]], version_key(place[4]), place_key(FURTHER, place[len(_PLACE) :]))
        )
    ]


def _statement(subject: SupportKey, rows: list[tuple[str, ...]], libraries: Iterable[str]) -> Statement:
    outcomes: dict[Point, str] = {}
    outcomes_at: dict[Point, tuple[str, str]] = {}
    cells, unknown, not_applicable = [], [], []
    for cell, library, toolkit, target, outcome, message, reason, diagnostics in rows:
        point = Point(library, toolkit or AS_BUNDLED, target)
        if outcome.partition(" ")[0] in ENDINGS:
            outcomes[point] = outcome
            if outcome != "built":
                outcomes_at[point] = (diagnostics.partition("\n")[0] or reason, message or reason)
        elif outcome == "unsupported":
            not_applicable.append(point)
        else:
            unknown.append(cell)
            continue
        cells.append(cell)
    blocks = _blocks(outcomes)
    clauses = tuple(_clause(block, outcomes_at) for block in blocks)
    apart = frozenset(not_applicable)
    gaps = frozenset(
        point
        for clause in clauses
        for library in clause.libraries
        for toolkit in clause.toolkits
        for part in clause.parts
        for target in part.targets
        if (point := Point(library, toolkit, target)) not in outcomes and point not in apart
    )
    tried = [*outcomes, *not_applicable]
    holes = Holes(
        libraries=_between({point.library for point in tried}, libraries, version_key),
        toolkits=_between({point.toolkit for point in tried} - {AS_BUNDLED}, RELEASES, version_key),
        targets=_between({point.target for point in tried}, PLAIN_TARGETS, target_key, _kind),
    )
    pairs = {(point.library, point.toolkit) for point in tried}
    both = product({point.library for point in outcomes}, {point.toolkit for point in outcomes})
    statement = Statement(
        subject=subject, clauses=clauses, cells=tuple(cells), not_applicable=apart, gaps=gaps, unknown=tuple(unknown),
        holes=holes,
        apart=frozenset(set(both) - pairs),
    )  # fmt: skip
    return replace(statement, headline=headline_of(statement), notes=notes_of(statement))


def _blocks(outcomes: dict[Point, str]) -> list[Block]:
    """Return blocks of libraries (outer) x toolkits (inner), folded first along the axis that gives fewer blocks."""
    by_library: OutcomeGrid = {}
    by_toolkit: OutcomeGrid = {}
    for point, outcome in outcomes.items():
        by_library.setdefault(point.library, {}).setdefault(point.toolkit, {})[point.target] = outcome
        by_toolkit.setdefault(point.toolkit, {}).setdefault(point.library, {})[point.target] = outcome
    libraries_first = fold(by_library)
    toolkits_first = fold(by_toolkit)
    if len(toolkits_first) < len(libraries_first):
        return [Block(block.inner, block.outer, block.row) for block in toolkits_first]
    return libraries_first


def _clause(block: Block, outcomes_at: dict[Point, tuple[str, str]]) -> Clause:
    by_outcome: dict[str, list[str]] = {}
    for target in sorted(block.row, key=target_key):
        by_outcome.setdefault(block.row[target], []).append(target)
    parts = []
    for outcome, targets in by_outcome.items():
        points = (Point(a, b, c) for a in block.outer for b in block.inner for c in targets)
        messages = [outcomes_at[point] for point in points if outcomes_at.get(point, ("", ""))[1]]
        kinds = Counter(kind for kind, _ in messages)
        most = kinds.most_common()[0][0] if kinds else ""
        first = next((message for kind, message in messages if kind == most), "")
        parts.append(TargetGroup(outcome=outcome, targets=tuple(targets), message=first, messages=len(kinds)))
    return Clause(libraries=tuple(block.outer), toolkits=tuple(block.inner), parts=tuple(parts))


def _kind(target: str) -> str:
    return target.partition("_")[0]


def _between(tried: set[str], known: Iterable[str], key: Any, kind: Any = lambda _value: "") -> tuple[str, ...]:
    """Return the known untried values between the first and the last tried one, separately for each kind."""
    kinds: dict[str, list[str]] = {}
    for value in sorted(tried, key=key):
        kinds.setdefault(kind(value), []).append(value)
    left = [value for value in known if value and value not in tried]
    found = (
        between(of[0], of[-1], [value for value in left if kind(value) == which], key) for which, of in kinds.items()
    )
    return tuple(sorted(chain.from_iterable(found), key=key))
