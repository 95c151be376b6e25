"""Statements along a parameter: what its numbers, or the releases of a header library, change where all else is the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from harness.analysis.support import Clause, Point, Statement, headline_of
from harness.matrix.axes import Parameter, parameters, parameters_of, version_key
from harness.matrix.ranges import ranges, spell_part
from harness.toolkits.header_libraries import LIBRARIES, is_release, known_versions

MOST_RUNS = 4
"""Ranges that change more often than this are described by the statements of each value."""


@dataclass(frozen=True, kw_only=True)
class Along:
    """The effect of one parameter.

    Parameters
    ----------
    parameter : Parameter
        The parameter, with all values that variants of the case have.
    first : Statement
        The statement of its first value: case, backend and headers are those of all.
    rest : str
        The other parameters, as names of variants have them.
    runs : tuple of (tuple of str, str)
        Consecutive values with the same outcome, and that outcome, such as ``builds``.
    untried : tuple of str
        Untried releases of a header library between the ends of two runs.
    """

    parameter: Parameter
    first: Statement
    rest: str
    runs: tuple[tuple[tuple[str, ...], str], ...]
    untried: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """``builds up to bytes=49152; from bytes=49156 rejected at link``, without what the compilers said."""
        axis = [value for values, _ in self.runs for value in values]
        said = []
        for values, what in self.runs:
            where = spell_part(values, axis, self.parameter.label(""))
            colon = ":" if ": " in what else ""
            said.append(f"builds {where}" if what == "builds" else f"{where}{colon} {what}")
        untried = f" ({self.parameter.key} {', '.join(self.untried)} untried)" if self.untried else ""
        # What has parts itself is a sentence of its own.
        several = any("; " in what for _, what in self.runs)
        if not several:
            return "; ".join(said) + untried
        # The parameter's name stays as it is.
        begun = [part if part.startswith(self.parameter.key) else part[0].upper() + part[1:] for part in said]
        return ". ".join(begun) + untried


def along(statements: Iterable[Statement]) -> list[Along]:
    """The effects of the parameters that are numbers or releases.

    A statement needs consecutive values with different outcomes that were tried with the same library, CUDA
    release and target somewhere, so that the parameter is what differs.
    """
    subjects: dict[tuple[object, ...], list[Statement]] = {}
    for item in statements:
        if item.clauses:
            subject = item.subject
            key = (subject.topic, subject.case, subject.backend, subject.headers, subject.further)
            subjects.setdefault(key, []).append(item)
    found = []
    for items in subjects.values():
        for parameter in parameters(item.subject.variant for item in items):
            if parameter.kind != "word" and len(parameter.values) > 1:
                found += _along(parameter, items)
    return found


def _along(parameter: Parameter, items: Sequence[Statement]) -> list[Along]:
    rests: dict[str, dict[str, Statement]] = {}
    for item in items:
        own = dict(parameters_of(item.subject.variant))
        value = own.pop(parameter.key, None)
        if value is not None:
            rests.setdefault(",".join(f"{name}={of}" for name, of in own.items()), {})[value] = item
    found = (_of_one(parameter, rest, by_value) for rest, by_value in rests.items())
    return [item for item in found if item]


def _of_one(parameter: Parameter, rest: str, by_value: Mapping[str, Statement]) -> Along | None:
    values = [value for value in parameter.values if value in by_value]
    runs = ranges(((value, _said(by_value[value])) for value in values), _releases(parameter), _version)
    if not 2 <= len(runs) <= MOST_RUNS:
        return None
    if not all(_points(by_value[str(run.before)]) & _points(by_value[run.values[0]]) for run in runs[1:]):
        return None
    return Along(
        parameter=parameter,
        first=by_value[values[0]],
        rest=rest,
        runs=tuple((run.values, run.outcome) for run in runs),
        untried=tuple(value for run in runs for value in run.untried),
    )


def _said(statement: Statement) -> str:
    """The headline without the backend's name, which is the same for all, and without messages, which have the parameter's value in them."""
    plain = tuple(
        replace(clause, parts=tuple(replace(part, message="", messages=0) for part in clause.parts))
        for clause in statement.clauses
    )
    return headline_of(replace(statement, clauses=plain)).partition(": ")[2]


def _points(statement: Statement) -> set[Point]:
    """Outcomes that a compiler decided."""
    silent = statement.gaps | statement.not_applicable
    return {point for clause in statement.clauses for point in _all_points(clause)} - silent


def _all_points(clause: Clause) -> Iterable[Point]:
    for part in clause.parts:
        for library in clause.libraries:
            for toolkit in clause.toolkits:
                yield from (Point(library, toolkit, target) for target in part.targets)


def _releases(parameter: Parameter) -> list[str]:
    """Known releases of a header library, in order."""
    known = sorted(known_versions(LIBRARIES[parameter.key]), key=version_key) if parameter.library else []
    return [item for item in known if not Version(item).is_prerelease]


def _version(text: str) -> Version | None:
    return Version(text) if is_release(text) else None
