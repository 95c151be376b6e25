"""Support statements: a sentence, and the blocks of cells that support it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Point(NamedTuple):
    """The position of a cell within its statement; the toolkit is the compiler's."""

    library: str
    toolkit: str
    target: str


@dataclass(frozen=True, kw_only=True)
class SupportKey:
    """The subject of a statement.

    Parameters
    ----------
    topic, case, variant, backend : str
        The program, and the way to compile.
    headers : str
        The release that headers were taken from, where it was another one.
    further : tuple of str
        What else its cells have in common: a value of each of `harness.matrix.axes.FURTHER`.
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
        `harness.analysis.frame.outcome_of`.
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

    Every point of libraries x toolkits x targets is covered, but those among the statement's `gaps` and `not_applicable` ones.
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
        What it is about.
    clauses : tuple of Clause
        In the order of versions; their blocks do not overlap.
    cells : tuple of str
        Ids of the cells it covers.
    not_applicable : frozenset of Point
        Covered cells that are ``unsupported``: a toolkit that knows no such architecture, for instance.
    gaps : frozenset of Point
        Points inside a clause's block that were not tested; the sentence does not speak of them.
    apart : frozenset of (str, str)
        Library and toolkit that were both tried, but never together.
    unknown : tuple of str
        Ids of requested cells without a compiler's answer: unavailable, harness_error, missing. Not covered.
    holes : Holes
        Whole versions and targets that lie between tested ones and were not tried.
    headline : str
        What works and what fails, in English: ``cupy-jitify: up to 13.0.0 rejected at compile ("incomplete type"); from 13.1.0 needs sm_80``.
        Messages in it come out of compilers: escape it where it is shown.
    notes : tuple of str
        What was tested, what is not applicable, and what was not tested; short sentences.
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
        """Return the outcome that the statement gives a cell; None outside of the statement."""
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
