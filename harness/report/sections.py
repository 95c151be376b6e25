"""Pages other than the matrix: findings of `harness.analysis`, and the effect of each parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import pandas as pd
from markupsafe import Markup
from packaging.version import Version

from harness.analysis import changes, coverage, disagreements, statements
from harness.analysis.diff import MEANINGS
from harness.analysis.disagreements import Disagreement
from harness.analysis.frame import NUMBERS
from harness.analysis.history import History, breaks, trend, unsteady
from harness.analysis.support import Clause, Point, Statement, headline_of
from harness.matrix.axes import (
    PLACE,
    Parameter,
    backend_key,
    cell_link,
    matrix_link,
    parameters,
    parameters_of,
    version_key,
)
from harness.matrix.ranges import ranges, spell_part
from harness.report.pages import Section
from harness.report.plots import is_compared, outcomes_over_time, pictures, resources_by_target
from harness.toolkits.header_libraries import LIBRARIES, is_release, known_versions

MOST_RUNS = 4
"""Maximum number of ranges. The statements of each value describe a parameter with more changes."""


@dataclass(frozen=True, kw_only=True)
class ParameterEffect:
    """The effect of one parameter.

    Parameters
    ----------
    parameter : Parameter
        The parameter, with all values in the variants of the case.
    first : Statement
        The statement of its first value. Its case, backend and headers are common to all values.
    rest : str
        The other parameters, as in names of variants.
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
        """The effect in words, without compilers' messages: ``builds up to bytes=49152; from bytes=49156 rejected at link``."""
        axis = [value for values, _ in self.runs for value in values]
        parts = []
        for values, what in self.runs:
            where = spell_part(values, axis, self.parameter.label(""))
            colon = ":" if ": " in what else ""
            parts.append(f"builds {where}" if what == "builds" else f"{where}{colon} {what}")
        untried = f" ({self.parameter.key} {', '.join(self.untried)} untried)" if self.untried else ""
        # An outcome with several parts gets a sentence of its own.
        several = any("; " in what for _, what in self.runs)
        if not several:
            return "; ".join(parts) + untried
        # The parameter's name keeps its case.
        begun = [part if part.startswith(self.parameter.key) else part[0].upper() + part[1:] for part in parts]
        return ". ".join(begun) + untried


def parameter_effects(statements: Iterable[Statement]) -> list[ParameterEffect]:
    """Return the effects of the parameters that are numbers or releases.

    A statement requires consecutive values with different outcomes that share a library, CUDA release and target. Only
    then does the parameter explain the difference.
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
                found += _effects_of(parameter, items)
    return found


def _effects_of(parameter: Parameter, items: Sequence[Statement]) -> list[ParameterEffect]:
    rests: dict[str, dict[str, Statement]] = {}
    for item in items:
        own = dict(parameters_of(item.subject.variant))
        value = own.pop(parameter.key, None)
        if value is not None:
            rests.setdefault(",".join(f"{name}={of}" for name, of in own.items()), {})[value] = item
    found = (_of_one(parameter, rest, by_value) for rest, by_value in rests.items())
    return [item for item in found if item]


def _of_one(parameter: Parameter, rest: str, by_value: Mapping[str, Statement]) -> ParameterEffect | None:
    values = [value for value in parameter.values if value in by_value]
    runs = ranges(((value, _plain_headline(by_value[value])) for value in values), _releases(parameter), _version)
    if not 2 <= len(runs) <= MOST_RUNS:
        return None
    if not all(_points(by_value[str(run.before)]) & _points(by_value[run.values[0]]) for run in runs[1:]):
        return None
    return ParameterEffect(
        parameter=parameter,
        first=by_value[values[0]],
        rest=rest,
        runs=tuple((run.values, run.outcome) for run in runs),
        untried=tuple(value for run in runs for value in run.untried),
    )


def _plain_headline(statement: Statement) -> str:
    """Return the headline without the backend's name and without messages.

    The backend is the same for all values, and messages contain the parameter's value.
    """
    plain = tuple(
        replace(clause, parts=tuple(replace(part, message="", messages=0) for part in clause.parts))
        for clause in statement.clauses
    )
    return headline_of(replace(statement, clauses=plain)).partition(": ")[2]


def _points(statement: Statement) -> set[Point]:
    """Return the points with a compiler's outcome."""
    silent = statement.gaps | statement.not_applicable
    return {point for clause in statement.clauses for point in _all_points(clause)} - silent


def _all_points(clause: Clause) -> Iterable[Point]:
    for part in clause.parts:
        for library in clause.libraries:
            for toolkit in clause.toolkits:
                yield from (Point(library, toolkit, target) for target in part.targets)


def _releases(parameter: Parameter) -> list[str]:
    """Return the known releases of a header library, in order."""
    known = sorted(known_versions(LIBRARIES[parameter.key]), key=version_key) if parameter.library else []
    return [item for item in known if not Version(item).is_prerelease]


def _version(text: str) -> Version | None:
    return Version(text) if is_release(text) else None


LISTED = 200
"""Maximum number of entries in a list. The page shows the total."""

RESOURCES = 6
"""Maximum number of programs whose registers and shared memory are drawn, those with the largest differences first."""

RUNS = 5
"""Runs of each environment that are compared with each other."""

# With more cells than this, each run is compared only with the previous one: every comparison takes a second.
_MANY = 50_000


def make_sections(table: pd.DataFrame, history: History | None) -> list[Section]:
    """Return every page with content.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    history : History or None
        Earlier runs.
    """
    found = [
        Section(name="support", values=_support(table)),
        Section(name="disagreements", values=_disagreements(table)),
    ]
    if history is not None:
        links = _links(table)
        found += [
            Section(name="changes", values=_changes(history, links)),
            Section(name="history", values=_history(history, links)),
        ]
    return [
        *found,
        Section(name="coverage", values=_coverage(table)),
        Section(name="pictures", values={"pictures": _pictures(table)}),
    ]


def section_names(history: History | None) -> list[tuple[str, str]]:
    """Return name and title of each page."""
    names = [
        "support",
        "disagreements",
        *(("changes", "history") if history is not None else ()),
        "coverage",
        "pictures",
    ]
    return [(name, name.capitalize()) for name in names]


def _links(table: pd.DataFrame) -> dict[str, str]:
    """Return the addresses of the matrix's cells, by id."""
    names = ["cell", *PLACE]
    return {
        row[0]: cell_link(dict(zip(names, row, strict=True))) for row in table[names].itertuples(index=False, name=None)
    }


def _support(table: pd.DataFrame) -> dict[str, Any]:
    """Return statements by case. Variants with the same statements share an entry."""
    cases: dict[tuple[str, str], dict[tuple[Any, ...], list[Statement]]] = {}
    found = statements(table)
    for item in found:
        of_case = cases.setdefault((item.subject.topic, item.subject.case), {})
        key = (item.subject.backend, item.subject.headers, item.subject.further, item.sentence)
        of_case.setdefault(key, []).append(item)
    effects = _effects(found)
    return {
        "count": len(found),
        "backends": list(dict.fromkeys(sorted((item.subject.backend for item in found), key=backend_key))),
        "cases": [
            (case, effects.get(case, []), [_statement(items) for items in groups.values()])
            for (_, case), groups in cases.items()
        ],
    }


def _effects(found: Sequence[Statement]) -> dict[str, list[dict[str, Any]]]:
    """Return effects of parameters by case.

    The same effect with several values of the other parameters is one entry.
    """
    effects: dict[str, dict[tuple[str, str], list[ParameterEffect]]] = {}
    for item in parameter_effects(found):
        of_case = effects.setdefault(item.first.subject.case, {})
        of_case.setdefault((item.first.subject.backend, item.sentence), []).append(item)
    return {
        case: [
            {
                "first": items[0],
                "rests": [item.rest for item in items if item.rest],
                "link": matrix_link(case=case, backend=backend, across=items[0].parameter.key),
            }
            for (backend, _), items in by_sentence.items()
        ]
        for case, by_sentence in effects.items()
    }


def _statement(items: Sequence[Statement]) -> dict[str, Any]:
    first = items[0]
    outcomes = {part.outcome for clause in first.clauses for part in clause.parts}
    kind = "built" if first.works_everywhere else "rejected" if outcomes and "built" not in outcomes else "mixed"
    return {
        "first": first,
        "kind": kind if first.clauses else "unsupported",
        "variants": [item.subject.variant for item in items],
        "link": matrix_link(case=first.subject.case, backend=first.subject.backend),
    }


def _disagreements(table: pd.DataFrame) -> dict[str, Any]:
    """Return each disagreement once for all its variants, and once for several cases with the same disagreement and messages."""
    facts: dict[tuple[Any, ...], list[Disagreement]] = {}
    for item in disagreements(table):
        sides = tuple((side.outcome, side.toolchains) for side in item.sides)
        facts.setdefault((item.kind, item.case, item.further, item.places, sides), []).append(item)
    alike: dict[tuple[Any, ...], list[list[Disagreement]]] = {}
    for of_it in facts.values():
        first = of_it[0]
        outcomes = tuple((side.outcome, side.toolchains, side.message) for side in first.sides)
        alike.setdefault((first.kind, first.further, first.places, outcomes), []).append(of_it)
    items = [
        (of_it[0], [item.variant for item in of_it if item.variant], _link_of(of_it), [(other[0].case, _link_of(other)) for other in others])
        for of_it, *others in list(alike.values())[:LISTED]
    ]  # fmt: skip
    return {"items": items, "count": len(alike)}


def _link_of(items: Sequence[Disagreement]) -> str:
    first = items[0]
    return matrix_link(case=first.case, variant=first.variant if len(items) == 1 else "", target=first.targets)


def _changes(history: History, links: Mapping[str, str]) -> dict[str, Any]:
    """Return pairs of runs of one environment, newest first."""
    runs = _runs(history)
    pairs = []
    for environment, of_it in runs.items():
        last = of_it[-RUNS:]
        wanted = list(combinations(last, 2)) if len(history.table) <= _MANY else list(pairwise(last))
        for old, new in sorted(wanted, key=lambda pair: (-of_it.index(pair[1]), -of_it.index(pair[0]))):
            pairs.append((environment, old, new, changes(history.cells_of(old["run"]), history.cells_of(new["run"]))))
    return {"pairs": pairs, "meanings": MEANINGS, "listed": LISTED, "cell_links": links}


def _history(history: History, links: Mapping[str, str]) -> dict[str, Any]:
    facts = trend(history)
    environments: dict[str, list[Mapping[str, Any]]] = {}
    for row in facts.to_dict("records"):
        environments.setdefault(str(row["environment"]), []).append(row)
    broken, flaky = breaks(history), unsteady(history)
    pictures_of = {name: Markup(outcomes_over_time(part)) for name, part in facts.groupby("environment")}  # noqa: S704 (our own markup; every word of others in it is escaped)
    return {
        "environments": environments,
        "pictures": pictures_of,
        "broken": broken[:LISTED],
        "broken_count": len(broken),
        "unsteady": flaky[:LISTED],
        "unsteady_count": len(flaky),
        "cell_links": links,
    }


def _coverage(table: pd.DataFrame) -> dict[str, Any]:
    return {"coverage": coverage(table), "listed": LISTED}


def _pictures(table: pd.DataFrame) -> list[tuple[str, Markup]]:
    """Return titles and pictures.

    The pictures are our own markup, and all foreign text in them is escaped (`harness.report.plots`).
    """
    # Parts of a table copy all its columns, and logs and messages are most of the data.
    table = table[[*PLACE, "release", "headers", "outcome", *NUMBERS]]
    found = [(name.replace("-", " "), Markup(svg)) for name, svg in pictures(table).items()]  # noqa: S704 (our own markup; every word of others in it is escaped)
    built = table[table["registers"].notna() & table["target"].map(is_compared)]
    spread = built.groupby(["case", "variant"], sort=False)["registers"].nunique()
    programs = spread[spread > 1].sort_values(ascending=False, kind="stable").index
    # One variant per case: the others look similar.
    most = dict(reversed(list(programs)))
    shown = [program for program in programs if most[program[0]] == program[1]][:RESOURCES]
    of = {program: built[(built["case"] == program[0]) & (built["variant"] == program[1])] for program in shown}
    for resource in ("registers", "shared"):
        top = max((float(part[resource].max()) for part in of.values() if part[resource].notna().any()), default=0)
        for (case, variant), part in of.items():
            svg = resources_by_target(part, resource, top=top)
            title = f"{case} {variant}".strip()
            found += [(f"{title}: {resource} by architecture", Markup(svg))] if svg else []  # noqa: S704 (our own markup; every word of others in it is escaped)
    return found


def _runs(history: History) -> dict[str, list[dict[str, Any]]]:
    """Return runs by environment, oldest first."""
    firsts = history.table.drop_duplicates("run")[["run", "environment", "started", "commit"]]
    runs: dict[str, list[dict[str, Any]]] = {}
    for row in firsts.to_dict("records"):
        runs.setdefault(str(row["environment"]), []).append(row)
    return runs
