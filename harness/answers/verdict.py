"""Describe a row of versions in a few words: ``works since 13.1``, ``never``, ``broken in 0.59.0 only``, ``not tried``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.answers.question import version_of
from harness.matrix.marks import ANSWER_KINDS, GROUPS
from harness.matrix.ranges import ranges, spell

WORKS, NOT, FAULT, SURPRISE, UNAVAILABLE, UNTRIED, NOTHING = (group.letter for group in GROUPS.values())
"""Letters of cells by their group: built; refused as expected; a known fault; a surprise; unavailable; unknown; not applicable."""

SILENT = frozenset(group.letter for group in GROUPS.values() if not group.answered)
"""Letters of cells without a compiler's answer."""

REFUSED = frozenset((NOT, FAULT, SURPRISE))
"""Letters of cells that a compiler said something against."""

_LISTED = 3


@dataclass(frozen=True, kw_only=True)
class Support:
    """The verdict for a program, a tool and an architecture.

    Parameters
    ----------
    kind : str
        A key of `harness.matrix.marks.ANSWER_KINDS`.
    text : str
        In a few words.
    note : str
        A qualification of it; may be empty.
    """

    kind: str
    text: str
    note: str = ""

    @property
    def works(self) -> bool:
        """Return whether it works in the newest tried versions."""
        return ANSWER_KINDS[self.kind].sense == "works"

    @property
    def silent(self) -> bool:
        """Return whether no compiler answered."""
        return ANSWER_KINDS[self.kind].sense == "silent"

    @property
    def refused(self) -> bool:
        """Return whether it works in no version."""
        return ANSWER_KINDS[self.kind].sense == "refused"


def _plain(kind: str) -> Support:
    """The verdict of a kind whose words name no version."""
    return Support(kind=kind, text=ANSWER_KINDS[kind].text)


UNTRIED_VERDICT = _plain("untried")


@dataclass(frozen=True)
class VersionGrid:
    """Versions of a library, CUDA releases, and a letter for each pair: row by row, a library's version each.

    Parameters
    ----------
    libraries : tuple of str
        Versions, oldest first; one empty text for a tool without a library.
    toolkits : tuple of str
        CUDA releases, oldest first.
    letters : str
        One a pair.
    """

    libraries: tuple[str, ...]
    toolkits: tuple[str, ...]
    letters: str

    def of_library(self, place: int) -> str:
        """Letters of one version, by CUDA release."""
        return self.letters[place * len(self.toolkits) : (place + 1) * len(self.toolkits)]

    def of_toolkit(self, place: int) -> str:
        """Letters of one CUDA release, by version."""
        return self.letters[place :: len(self.toolkits)]


def verdict_of(grid: VersionGrid, known: Mapping[str, Sequence[str]], library: str = "") -> Support:
    """The verdict of a grid.

    Parameters
    ----------
    grid : VersionGrid
        The versions, and what became of each.
    known : Mapping[str, sequence of str]
        Releases by name (``cuda``, and libraries), to name the untried ones.
    library : str
        Whose versions they are.
    """
    told = set(grid.letters) - SILENT
    if not told:
        return _silent(grid.letters)
    if told == {WORKS}:
        return _plain("works")
    if WORKS not in told:
        return _plain("fault" if FAULT in told and told <= {FAULT, SURPRISE} else "never")
    if (outcomes := along(grid.libraries, grid.of_library)) is not None:
        return _spelled(outcomes, "", known.get(library, ()))
    if (outcomes := along(grid.toolkits, grid.of_toolkit)) is not None:
        return _spelled(outcomes, "CUDA ", known.get("cuda", ()))
    return _both(grid, known)


def along(names: Sequence[str], letters_of: Callable[[int], str]) -> list[tuple[str, bool]] | None:
    """Versions of one axis with a result, and whether they work; None if the other axis matters as well."""
    found = []
    for place, name in enumerate(names):
        told = {letter == WORKS for letter in letters_of(place) if letter not in SILENT}
        if len(told) > 1:
            return None
        found += [(name, works) for works in told]
    return found


def picked(grid: VersionGrid, libraries: Sequence[str] | None, toolkits: Sequence[str] | None) -> Support:
    """The verdict for some of the versions. The page's script does the same (`assets/answer.js`).

    Parameters
    ----------
    grid : VersionGrid
        The versions, and what became of each.
    libraries, toolkits : sequence of str, optional
        The requested ones; by default, all.
    """
    found = [
        (library, toolkit, grid.letters[place * len(grid.toolkits) + other])
        for place, library in enumerate(grid.libraries)
        for other, toolkit in enumerate(grid.toolkits)
        if (libraries is None or library in libraries) and (toolkits is None or toolkit in toolkits)
    ]
    told = [item for item in found if item[2] not in SILENT]
    if not told:
        return _silent("".join(item[2] for item in found))
    works = [item for item in told if item[2] == WORKS]
    if len(works) == len(told):
        return _plain("works")
    if not works:
        fault = all(item[2] == FAULT for item in told)
        text = GROUPS["not"].word + (f": a {GROUPS['fault'].word}" if fault else "")
        return Support(kind="fault" if fault else "never", text=text)
    for place, prefix in ((0, ""), (1, "CUDA ")):
        good = {item[place] for item in works}
        bad = {item[place] for item in told if item[2] != WORKS}
        if not good & bad:
            names = [list(dict.fromkeys(item[place] for item in told if item[place] in group)) for group in (good, bad)]
            return Support(
                kind="part", text=f"works with {prefix}{', '.join(names[0])}; not with {prefix}{', '.join(names[1])}"
            )
    return Support(kind="part", text=f"works in {len(works)} of {len(told)} combinations")


def _silent(letters: str) -> Support:
    if UNAVAILABLE in letters:
        return Support(kind="untried", text=GROUPS["unavailable"].word)
    return _plain("na" if NOTHING in letters else "untried")


def _spelled(outcomes: Sequence[tuple[str, bool]], prefix: str, known: Sequence[str]) -> Support:
    """Ranges of versions that work and that do not."""
    runs = ranges(outcomes, known, version_of)
    first, last = runs[0], runs[-1]
    if first is last:
        return _plain("works" if first.outcome else "never")
    gaps = [spell(run.untried) for run in runs if run.untried]
    note = f"{'; '.join(gaps)} untried" if gaps else ""
    if len(runs) == 2:
        if last.outcome:
            return Support(kind="since", text=f"works since {prefix}{last.values[0]}", note=note)
        return Support(kind="until", text=f"works up to {prefix}{first.values[-1]}", note=note)
    if len(runs) == 3 and first.outcome:
        return Support(kind="but", text=f"broken in {prefix}{spell(runs[1].values)} only", note=note)
    if last.outcome:
        earlier = ", ".join(spell(run.values) for run in runs[:-1] if run.outcome)
        return Support(kind="but", text=f"works since {prefix}{last.values[0]}", note=f"and in {prefix}{earlier}")
    spans = ", ".join(spell(run.values) for run in runs if run.outcome)
    return Support(kind="until", text=f"only in {prefix}{spans}", note=note)


def _both(grid: VersionGrid, known: Mapping[str, Sequence[str]]) -> Support:
    """A phrase along CUDA for each version, when both axes matter; versions with the same phrase together."""
    verdicts = []
    for place, name in enumerate(grid.libraries):
        if found := along(grid.toolkits, grid.of_library(place).__getitem__):
            verdicts.append((name, _spelled(found, "CUDA ", known.get("cuda", ()))))
    *earlier, newest = ranges(verdicts)
    last = newest.outcome
    before = [f"{spell(run.values)}: {run.outcome.text}" for run in earlier]
    more = f"; and {len(before) - _LISTED} more" if len(before) > _LISTED else ""
    note = "; ".join(reversed(before[-_LISTED:])) + more
    if last.kind == "works":
        return Support(kind="since", text=f"works since {newest.values[0]}", note=note)
    if last.kind == "never":
        return Support(kind="until", text=f"not since {newest.values[0]}", note=note)
    return Support(
        kind="part", text=f"{newest.values[-1]}: {last.text}", note="; ".join(filter(None, (note, last.note)))
    )
