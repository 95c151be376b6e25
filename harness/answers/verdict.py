"""Statements about the versions of a program, a tool and an architecture: ``builds since CUDA 12.0``, ``0 of 3``, ``not tried``.

A statement follows from the cells of its grid:

- A change along an axis requires a pair of cells that differ only in that axis (`Claim`). If both axes changed
  together, the statement names both.
- A refusal by all cells includes their number. It says ``never`` if each axis has at least `NEVER` releases.
- A range contains only tried versions.

``.ci/check_statements.py`` checks the published statements against the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.answers.question import version_of
from harness.matrix.axes import version_key
from harness.matrix.marks import ANSWER_KINDS, GROUPS
from harness.matrix.ranges import Range, ranges, spell_tried
from harness.model.cell import ROCM, named_toolkit

WORKS, EMPTY, NOT, FAULT, SURPRISE, UNAVAILABLE, UNTRIED, NOTHING = (group.letter for group in GROUPS.values())
"""Letters of cells by their group: built; built without a kernel; refused as expected; a known fault; a surprise; unavailable; unknown; not applicable."""

SILENT = frozenset(group.letter for group in GROUPS.values() if not group.answered)
"""Letters of cells without a compiler's answer."""

REFUSED = frozenset((NOT, FAULT, SURPRISE))
"""Letters of cells with a compiler's refusal."""

NEVER = 3
"""Minimum number of CUDA releases, and of the library's releases, for the word ``never`` in a statement."""

_LISTED = 3
_RANGES, _EVERY = 4, 1000

Place = tuple[str, str]
"""A version of the library and a CUDA release."""


CLAIM_AXES = ("library", "cuda")
"""The axes of a place."""


@dataclass(frozen=True)
class Claim:
    """A change along an axis, with the pair of cells that proves it. The cells differ only in that axis.

    Parameters
    ----------
    axis : str
        ``library`` or ``cuda``.
    before, after : tuple of (str, str)
        The last place with one outcome, and the first place with the other outcome.
    builds : bool
        Whether the program builds from ``after`` on.
    """

    axis: str
    before: Place
    after: Place
    builds: bool


@dataclass(frozen=True, kw_only=True)
class Support:
    """The statement about a program, a tool and an architecture.

    Parameters
    ----------
    kind : str
        A key of `harness.matrix.marks.ANSWER_KINDS`.
    text : str
        The statement in a few words.
    note : str
        A qualification of the statement; may be empty.
    tried : str
        The versions with an answer: ``13.0.0 to 14.2.0, CUDA 12.4``.
    cells : int
        The number of cells with an answer.
    claims : tuple of Claim
        The changes that the text names.
    """

    kind: str
    text: str
    note: str = ""
    tried: str = ""
    cells: int = 0
    claims: tuple[Claim, ...] = ()

    @property
    def sense(self) -> str:
        """The sense of the kind (`harness.matrix.marks.AnswerKind`)."""
        return ANSWER_KINDS[self.kind].sense

    @property
    def works(self) -> bool:
        """Return whether the program builds in the newest tried versions."""
        return self.sense == "works"

    @property
    def silent(self) -> bool:
        """Return whether no compiler answered."""
        return self.sense == "silent"

    @property
    def refused(self) -> bool:
        """Return whether the program builds in no version."""
        return self.sense == "refused"


def _plain(kind: str) -> Support:
    """Return the statement of a kind whose text names no version."""
    return Support(kind=kind, text=ANSWER_KINDS[kind].text)


UNTRIED_VERDICT = _plain("untried")


@dataclass(frozen=True)
class VersionGrid:
    """Versions of a library, CUDA releases, and a letter for each pair. Each version of the library has a row.

    Parameters
    ----------
    libraries : tuple of str
        Versions, oldest first; one empty text for a tool without a library.
    toolkits : tuple of str
        CUDA releases, oldest first.
    letters : str
        One letter per pair.
    """

    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]
    letters: str

    def answered(self) -> dict[Place, bool]:
        """Return the places with a compiler's answer, and whether the program builds there."""
        return {place: letter == WORKS for place, letter in self.cells() if letter not in SILENT}

    def cells(self) -> Iterator[tuple[Place, str]]:
        """Yield the places with their letters."""
        size = len(self.toolkits)
        for number, letter in enumerate(self.letters):
            yield (self.libraries[number // size], self.toolkits[number % size]), letter


def verdict_of(grid: VersionGrid, known: Mapping[str, Sequence[str]], library: str = "") -> Support:
    """Return the statement of a grid.

    Parameters
    ----------
    grid : VersionGrid
        The versions, and the outcome of each.
    known : Mapping[str, sequence of str]
        Releases by name (``cuda``, and libraries), to name the untried ones.
    library : str
        The library that the grid's versions belong to.
    """
    answered = grid.answered()
    if not answered:
        return _silent(grid.letters)
    # A version that is not applicable or not available counts as tried.
    silent = [{place[axis] for place, letter in grid.cells() if letter != UNTRIED} for axis in (0, 1)]
    silent = [values - {place[axis] for place in answered} for axis, values in enumerate(silent)]
    releases = (known.get(library, ()), known.get("cuda", ()))
    letters = set(grid.letters) - SILENT
    axes = Places(
        answered, *([item for item in of if item not in values] for of, values in zip(releases, silent, strict=True))
    )
    return axes.statement(fault=FAULT in letters and letters <= {FAULT, SURPRISE})


class Places:
    """The places of a grid with an answer, and whether the program builds there.

    Parameters
    ----------
    answered : Mapping[tuple of (str, str), bool]
        Whether the program builds, by place. At least one place is required.
    known : sequence of (sequence of str)
        Known releases of the library, and of CUDA.
    """

    def __init__(self, answered: Mapping[Place, bool], *known: Sequence[str]) -> None:
        self.answered, self.known = answered, known or ((), ())
        self.values = [sorted({place[axis] for place in answered}, key=version_key) for axis in (0, 1)]

    def statement(self, fault: bool = False) -> Support:
        """Return the statement about all places."""
        count, tried = len(self.answered), self.tried(self.answered)
        if all(self.answered.values()):
            return Support(kind="works", text=ANSWER_KINDS["works"].text, tried=tried, cells=count)
        if not any(self.answered.values()):
            kind, text = (
                ("fault", f"{ANSWER_KINDS['fault'].text}, 0 of {count}") if fault else ("never", self.refusal())
            )
            return Support(kind=kind, text=text, tried=tried, cells=count)
        found = self.on_one_axis() or self.together() or self.on_both_axes()
        return Support(kind=found.kind, text=found.text, note=found.note, tried=tried, cells=count, claims=found.claims)

    def refusal(self) -> str:
        """Return ``0 of 2``, or ``never (0 of 14)`` if each axis has at least `NEVER` releases."""
        enough = all(len(values) >= NEVER or values == [""] for values in self.values)
        return f"{ANSWER_KINDS['never'].text} (0 of {len(self.answered)})" if enough else f"0 of {len(self.answered)}"

    def tried(self, places: Iterable[Place], last: str = ", ") -> str:
        """Return the versions of places: ``13.0.0 to 14.2.0, CUDA 12.4``."""
        chosen = list(places)
        return last.join(
            filter(None, (self.spell(axis, [place[axis] for place in chosen], _RANGES) for axis in (0, 1)))
        )

    def spell(self, axis: int, values: Sequence[str], most: int = _EVERY) -> str:
        """Return the tried values of an axis, with the prefix of the axis."""
        chosen = {value for value in values if value}
        if not chosen:
            return ""
        if axis and all(value.endswith(ROCM) for value in chosen):
            return ", ".join(map(named_toolkit, sorted(chosen, key=version_key)))
        return ("CUDA " if axis else "") + spell_tried(chosen, self.known[axis], version_key, most=most)

    def gaps(self, axis: int, runs: Iterable[Range[str, Any]]) -> str:
        """Return the untried known releases next to changes: ``CUDA 13.1, 13.2 untried``."""
        untried = self.spell(axis, [value for run in runs for value in run.untried])
        return f"{untried} untried" if untried else ""

    def count(self, libraries: Sequence[str]) -> int:
        """Return the number of places with some versions of the library."""
        return sum(place[0] in libraries for place in self.answered)

    def pair(self, axis: int, before: str, after: str) -> Claim | None:
        """Return two places that differ only in this axis and have different outcomes, or None."""
        for place, works in self.answered.items():
            if place[axis] == before:
                other: Place = (place[0], after) if axis else (after, place[1])
                if self.answered.get(other, works) != works:
                    return Claim(CLAIM_AXES[axis], place, other, not works)
        return None

    def outcomes(self, axis: int) -> list[tuple[str, bool]] | None:
        """Return the values of an axis, and whether the program builds with them, or None if the other axis also matters."""
        found: dict[str, bool] = {}
        for place, works in self.answered.items():
            if found.setdefault(place[axis], works) != works:
                return None
        return [(value, found[value]) for value in self.values[axis]]

    def on_one_axis(self) -> Support | None:
        """Return the ranges of one axis, if that axis alone decides and a pair of cells proves each change, else None."""
        for axis in (0, 1):
            runs, claims = self.changes(axis)
            if claims and len(claims) == len(runs) - 1:
                return self.ranges(axis, runs, claims)
        return None

    def changes(self, axis: int) -> tuple[list[Range[str, bool]], tuple[Claim, ...]]:
        """Return the ranges of an axis that alone decides, and the changes that a pair of cells proves.

        Both are empty if the other axis also matters.
        """
        runs = ranges(self.outcomes(axis) or (), self.known[axis], version_of)
        return runs, tuple(filter(None, (self.pair(axis, str(run.before), run.values[0]) for run in runs[1:])))

    def ranges(self, axis: int, runs: Sequence[Range[str, bool]], claims: tuple[Claim, ...]) -> Support:
        """Return the statement about ranges of versions that build and ranges that do not."""
        (first, *_, last), prefix = runs, "CUDA " if axis else ""
        (held,) = self.values[1 - axis] if len(self.values[1 - axis]) == 1 else ("",)
        held = f" ({'' if axis else 'CUDA '}{held})" if held else ""
        note = self.gaps(axis, runs)
        good = self.spell(axis, [value for run in runs if run.outcome for value in run.values])
        bad = self.spell(axis, [value for run in runs if not run.outcome for value in run.values])
        if last.outcome and len(runs) == 2:
            return Support(kind="since", text=f"builds since {prefix}{last.values[0]}{held}", note=note, claims=claims)
        if len(runs) == 2:
            return Support(
                kind="until", text=f"builds up to {prefix}{first.values[-1]}{held}", note=note, claims=claims
            )
        if first.outcome and last.outcome:
            return Support(kind="but", text=f"builds except {bad}{held}", note=note, claims=claims)
        if last.outcome:
            start, *rest = runs[1:]
            later = [run for run in rest if not run.outcome]
            if sum(len(run.values) for run in later) < sum(len(run.values) for run in (start, *rest) if run.outcome):
                but = self.spell(axis, [value for run in later for value in run.values])
                return Support(
                    kind="but",
                    text=f"builds since {prefix}{start.values[0]} except {but.removeprefix(prefix)}{held}",
                    note=note,
                    claims=claims,
                )
            earlier = self.spell(axis, [value for run in runs[:-1] if run.outcome for value in run.values])
            note = "; ".join(filter(None, (f"and with {earlier}", note)))
            return Support(kind="but", text=f"builds since {prefix}{last.values[0]}{held}", note=note, claims=claims)
        return Support(kind="until", text=f"builds only with {good}{held}", note=note, claims=claims)

    def together(self) -> Support | None:
        """Return a statement that names both axes, if either explains the outcomes and no pair of cells separates them."""
        if not any(self.outcomes(axis) for axis in (0, 1)):
            return None
        good, bad = ([place for place, works in self.answered.items() if works is wanted] for wanted in (True, False))
        newest = all(self.answered[place] for place in self.answered if place[0] == self.values[0][-1])
        text = f"builds with {self.tried(good, ' and ')}; not with {self.tried(bad, ' and ')}"
        return Support(kind="part" if newest else "until", text=text, note="library and CUDA changed together")

    def on_both_axes(self) -> Support:
        """Return a statement along CUDA for each version of the library.

        Versions with the same statement form a group.
        """
        rows = []
        for version in self.values[0]:
            row = {place: works for place, works in self.answered.items() if place[0] == version}
            found = Places(row, (), self.known[1])
            phrase = found.on_one_axis() if len(set(row.values())) > 1 else None
            if phrase is None:
                kind = "works" if all(row.values()) else "never"
                phrase = Support(kind=kind, text=ANSWER_KINDS[kind].text)
            # The row already names its version.
            text = ", ".join(filter(None, (phrase.text.removesuffix(f" ({version})"), phrase.note)))
            rows.append((version, (phrase.kind, text, phrase.claims)))
        runs = [
            replace(run, outcome=("never", f"0 of {self.count(run.values)}")) if run.outcome[0] == "never" else run
            for run in ranges(((version, row[:2]) for version, row in rows), self.known[0], version_of)
        ]
        claims = dict(rows)
        newest, (kind, text) = runs[-1], runs[-1].outcome
        before = [f"{self.spell(0, run.values)}: {run.outcome[1]}" for run in reversed(runs[:-1])]
        more = f"; and {len(before) - _LISTED} more" if len(before) > _LISTED else ""
        note = "; ".join(before[:_LISTED]) + more
        named = tuple(claim for run in runs for claim in claims[run.values[-1]][2])
        if kind in ("works", "never") and len(runs) > 1:
            change = self.pair(0, str(newest.before), newest.values[0])
            if change and change.builds == (kind == "works"):
                words = "builds" if kind == "works" else "does not build"
                note = "; ".join(filter(None, (note, self.gaps(0, [newest]))))
                kind = "since" if kind == "works" else "until"
                return Support(kind=kind, text=f"{words} since {newest.values[0]}", note=note, claims=(*named, change))
        return Support(kind="part", text=f"{self.spell(0, newest.values)}: {text}", note=note, claims=named)


def picked(grid: VersionGrid, libraries: Sequence[str] | None, toolkits: Sequence[str] | None) -> Support:
    """Return the statement about some of the versions. The page's script does the same (`assets/answer.js`).

    Parameters
    ----------
    grid : VersionGrid
        The versions, and the outcome of each.
    libraries, toolkits : sequence of str, optional
        The requested versions; by default, all.
    """
    found = [
        (place, letter)
        for place, letter in grid.cells()
        if (libraries is None or place[0] in libraries) and (toolkits is None or place[1] in toolkits)
    ]
    answered = [item for item in found if item[1] not in SILENT]
    if not answered:
        return _silent("".join(letter for _, letter in found))
    good = [place for place, letter in answered if letter == WORKS]
    if len(good) == len(answered):
        return Support(kind="works", text=ANSWER_KINDS["works"].text, cells=len(answered))
    if not good:
        fault = all(letter == FAULT for _, letter in answered)
        text = f"{GROUPS['not'].word}, 0 of {len(answered)}" + (f": a {GROUPS['fault'].word}" if fault else "")
        return Support(kind="fault" if fault else "never", text=text, cells=len(answered))
    bad = [place for place, letter in answered if letter != WORKS]
    for axis, prefix in ((0, ""), (1, "CUDA ")):
        names = [list(dict.fromkeys(place[axis] for place in group)) for group in (good, bad)]
        shared = {place[1 - axis] for place in good} & {place[1 - axis] for place in bad}
        if shared and not set(names[0]) & set(names[1]):
            text = f"builds with {prefix}{', '.join(names[0])}; not with {prefix}{', '.join(names[1])}"
            return Support(kind="part", text=text, cells=len(answered))
    return Support(kind="part", text=f"builds in {len(good)} of {len(answered)} combinations", cells=len(answered))


def _silent(letters: str) -> Support:
    if EMPTY in letters:
        return Support(kind="untried", text=GROUPS["empty"].word)
    if UNAVAILABLE in letters:
        return Support(kind="untried", text=GROUPS["unavailable"].word)
    return _plain("na" if NOTHING in letters else "untried")
