"""The English of support statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise

from harness.analysis.statement import Clause, Point, Statement, TargetGroup
from harness.diagnostics import one_line
from harness.matrix.axes import FURTHER, labels
from harness.matrix.order import fold_targets, target_key, version_key
from harness.model import KNOWN_TARGETS, Target
from harness.records import at_stage
from harness.toolkits import RELEASES

_VERBS = {"rejected": "rejected", "crashed": "crashes", "timed_out": "does not come to an end"}
_LISTED = 6
_QUOTED = 100
_LONG_NAME = re.compile(r"['`][^'`]{40,}'")

PLAIN_TARGETS = tuple(str(target) for target in KNOWN_TARGETS if not target.suffix)
"""Every known target without a suffix, in order."""


def headline_of(statement: Statement) -> str:
    """Phrases for works and fails."""
    subject = statement.subject
    name = subject.backend + (f" with the headers of CUDA {subject.headers}" if subject.headers else "")
    name += "".join(f", {label}" for label in labels(subject.further, FURTHER))
    if not statement.clauses:
        return f"{name}: {'not applicable wherever it was tried' if statement.not_applicable else 'no results'}"
    libraries = _axis(clause.libraries for clause in statement.clauses)
    toolkits = _axis(clause.toolkits for clause in statement.clauses)
    said = []
    by_toolkit = _apart_by(statement.clauses, "toolkits", "libraries")
    by_library = not by_toolkit and _apart_by(statement.clauses, "libraries", "toolkits")
    for clause in statement.clauses:
        library = "" if by_toolkit else _place(clause.libraries, libraries)
        toolkit = "" if by_library else _place(clause.toolkits, toolkits, "CUDA ")
        if library and toolkit:
            toolkit = f"with {_place(clause.toolkits, toolkits, 'CUDA ', open_ended=False)}"
        place = " ".join(filter(None, (library, toolkit)))
        said.append(f"{place}{': ' if place else ''}{_what(clause)}")
    if statement.works_everywhere:
        said = ["works"]
    return f"{name}: {'; '.join(said)}"


def notes_of(statement: Statement) -> tuple[str, ...]:
    """Phrases for tested, inapplicable and untested points."""
    notes = []
    tried: dict[str, set[str]] = {}
    for point in (*statement.not_applicable, *statement.gaps):
        tried.setdefault(point.toolkit, set()).add(point.library)
    for clause in statement.clauses:
        for toolkit in clause.toolkits:
            tried.setdefault(toolkit, set()).update(clause.libraries)
    if statement.clauses:
        libraries = [name for name in _axis(clause.libraries for clause in statement.clauses) if name]
        toolkits = _axis(clause.toolkits for clause in statement.clauses)
        targets = _targets(part for clause in statement.clauses for part in clause.parts)
        tested = [f"{statement.subject.backend} {_span(libraries)}"] if libraries else []
        tested += [f"CUDA {_span(toolkits)}", fold_targets(targets, targets)]
        notes.append(f"Tested: {', '.join(tested)}.")
    if statement.not_applicable:
        notes.append(f"Unsupported: {_points(statement.not_applicable, tried)}.")
    if statement.apart:
        notes.append(f"Never tried together: {_pairs(statement.apart)}.")
    gaps = [point for point in statement.gaps if (point.library, point.toolkit) not in statement.apart]
    if gaps:
        notes.append(f"Untested: {_points(gaps, tried)}.")
    holes = statement.holes
    between = [f"{statement.subject.backend} {_span(holes.libraries)}"] if holes.libraries else []
    between += [f"CUDA {_runs(holes.toolkits, list(RELEASES))}"] if holes.toolkits else []
    between += [fold_targets(holes.targets, PLAIN_TARGETS)] if holes.targets else []
    if between:
        notes.append(f"Untested in between: {'; '.join(between)}.")
    if statement.unknown:
        count = len(statement.unknown)
        notes.append(f"No result for {count} cell{'s' if count > 1 else ''} that should have been tried.")
    return tuple(notes)


def _apart_by(clauses: Sequence[Clause], name: str, other: str) -> bool:
    """Return whether one axis alone separates the clauses.

    Neighbors must share a version of the other axis: where both changed at once, the cause is unknown.
    """
    values = [value for clause in clauses for value in getattr(clause, name)]
    return len(values) == len(set(values)) and all(
        set(getattr(one, other)) & set(getattr(two, other)) for one, two in pairwise(clauses)
    )


def _what(clause: Clause) -> str:
    """``works on sm_80–sm_120; rejected at compile on sm_70 and below``."""
    parts = sorted(clause.parts, key=lambda part: part.outcome != "built")
    if len(parts) == 1:
        return _verb(parts[0])
    axis = _targets(clause.parts)
    if len(parts) == 2 and parts[0].outcome == "built" and _is_threshold(parts[0].targets, axis):
        return f"needs {parts[0].targets[0]}, below it {_verb(parts[1])}"
    return ", ".join(f"{_verb(part)} on {fold_targets(part.targets, axis)}" for part in parts)


def _is_threshold(built: Sequence[str], axis: Sequence[str]) -> bool:
    """Return whether exactly the newer architectures of one kind are built."""
    kinds = {Target.parse(target).virtual for target in axis}
    return len(kinds) == 1 and list(built) == list(axis[-len(built) :])


def _verb(part: TargetGroup) -> str:
    if part.outcome == "built":
        return "works"
    if part.outcome == "compiled":
        return "compiles to PTX, which was not assembled"
    status, _, stage = part.outcome.partition(" at ")
    text = at_stage(_VERBS[status], stage)
    if part.message:
        others = f" and {part.messages - 1} more" if part.messages > 1 else ""
        message = _LONG_NAME.sub("'…'", part.message)  # Numba's kernels have names of 200 characters
        text += f' ("{one_line(message, _QUOTED)}"{others})'
    return text


def _place(chosen: Sequence[str], axis: Sequence[str], prefix: str = "", *, open_ended: bool = True) -> str:
    """Versions as a range of the tested ones; empty where that is all of them."""
    if len(chosen) == len(axis):
        return ""
    places = sorted(axis.index(value) for value in chosen)
    if places[-1] - places[0] != len(places) - 1:
        return prefix + ", ".join(axis[place] for place in places)
    if len(chosen) == 1 and not (open_ended and places[0] == len(axis) - 1):
        return prefix + chosen[0]
    if open_ended and places[0] == 0:
        return f"up to {prefix}{axis[places[-1]]}"
    if open_ended and places[-1] == len(axis) - 1:
        return f"from {prefix}{axis[places[0]]}"
    return f"{prefix}{axis[places[0]]} to {axis[places[-1]]}"


def _points(points: Iterable[Point], tried: Mapping[str, set[str]]) -> str:
    """``sm_50–sm_70 with CUDA 13.0 and 13.5``; libraries are named where it is not the same for all that tried the toolkit."""
    libraries: dict[tuple[str, str], set[str]] = {}
    # A set gives its points in another order in each process.
    for point in sorted(points, key=lambda point: target_key(point.target)):
        libraries.setdefault((point.toolkit, point.target), set()).add(point.library)
    by_toolkit: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (toolkit, target), names in libraries.items():
        named = () if names >= tried[toolkit] else tuple(sorted(names, key=version_key))
        by_toolkit.setdefault((toolkit, named), []).append(target)
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (toolkit, named), targets in sorted(by_toolkit.items(), key=lambda item: version_key(item[0][0])):
        groups.setdefault((tuple(sorted(targets, key=target_key)), named), []).append(toolkit)
    texts = [
        f"{fold_targets(targets, targets)} with {f'{_span(named)} and ' if any(named) else ''}CUDA {_span(toolkits)}"
        for (targets, named), toolkits in groups.items()
    ]
    rest = len(texts) - _LISTED
    return "; ".join([*texts[:_LISTED], f"and {rest} more of the kind"] if rest > 0 else texts)


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    by_toolkit: dict[str, list[str]] = {}
    for library, toolkit in pairs:
        by_toolkit.setdefault(toolkit, []).append(library)
    groups: dict[tuple[str, ...], list[str]] = {}
    for toolkit, libraries in sorted(by_toolkit.items(), key=lambda item: version_key(item[0])):
        groups.setdefault(tuple(sorted(libraries, key=version_key)), []).append(toolkit)
    return "; ".join(f"{_span(libraries)} and CUDA {_span(toolkits)}" for libraries, toolkits in groups.items())


def _runs(chosen: Iterable[str], axis: Sequence[str]) -> str:
    """``12.0 to 12.3, 12.5``: what follows each other on the axis as one."""
    wanted = set(chosen)
    runs = [list(run) for included, run in groupby(axis, wanted.__contains__) if included]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


def _targets(parts: Iterable[TargetGroup]) -> list[str]:
    return sorted({target for part in parts for target in part.targets}, key=target_key)


def _axis(values: Iterable[Sequence[str]]) -> list[str]:
    return sorted({value for versions in values for value in versions}, key=version_key)


def _span(versions: Sequence[str]) -> str:
    """``12.4``, ``11.8, 12.4 and 13.0``, or the ends and how many where there are many."""
    if len(versions) <= _LISTED:
        return " and ".join(filter(None, (", ".join(versions[:-1]), versions[-1])))
    return f"{versions[0]} to {versions[-1]} ({len(versions)} versions)"
