"""Sentences about a bisection: one per border, with the lanes that change together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from packaging.version import InvalidVersion, Version

from harness.bisection.search import Border, Lane, LaneOutcome
from harness.libraries import LIBRARIES
from harness.matrix.axes import fold_targets, natural_key, target_key
from harness.matrix.marks import ENDINGS
from harness.matrix.ranges import spell
from harness.model import Status
from harness.model.cell import named_toolkit
from harness.toolkits import LIBRARIES as HEADERS


def name_of(lanes: Iterable[Lane], among: Sequence[Lane]) -> str:
    """Return a label that separates some lanes from the others: ``[cache=true] sm_50–sm_80``; empty for all lanes."""
    lanes = list(lanes)
    if len(lanes) == len(among):
        return ""
    common, mine = _common_labels(lanes, among), {lane.variant for lane in lanes}
    parts = {lane: _parts(lane, common if common and lane.variant in mine else lane.variant) for lane in among}
    varying = [number for number in range(4) if len({part[number] for part in parts.values()}) > 1]
    axis = sorted({lane.target for lane in among}, key=target_key)
    targets: dict[str, list[str]] = {}
    for lane in lanes:
        words = " ".join(parts[lane][number] for number in varying if parts[lane][number])
        targets.setdefault(words, []).append(lane.target)
    names: dict[str, list[str]] = {}
    for words, found in targets.items():
        every = {lane.target for lane in among if _words(parts[lane], varying) == words}
        folded = "" if len(axis) == 1 or (words and set(found) == every) else fold_targets(found, axis)
        names.setdefault(folded, []).append(words)
    texts = [f"{_listed(words)} {folded}".strip() for folded, words in names.items()]
    return "; ".join(texts)


def _common_labels(lanes: Sequence[Lane], among: Sequence[Lane]) -> str:
    """Return the labels that exactly the variants of these lanes have: ``arch=given``; empty without any."""
    mine, every = ({lane.variant for lane in some} for some in (lanes, among))
    words = [set(variant.split(",")) for variant in mine]
    shared = set.intersection(*words)
    alone = {variant for variant in every if shared <= set(variant.split(","))} == mine
    first = min(mine).split(",")
    return ",".join(word for word in first if word in shared) if alone else ""


def _words(parts: Sequence[str], varying: Iterable[int]) -> str:
    return " ".join(parts[number] for number in varying if parts[number])


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_LISTED])
    return f"{shown} and {len(words) - _LISTED} more" if len(words) > _LISTED else shown


def _parts(lane: Lane, variant: str) -> tuple[str, str, str, str]:
    return (
        f"[{variant}]" if variant else "",
        lane.backend,
        lane.library,
        named_toolkit(lane.toolkit) if lane.toolkit else "",
    )


def lane_order(lane: Lane) -> tuple[object, ...]:
    """Return the sorting key of a lane, as in the matrix."""
    return (
        natural_key(lane.variant),
        lane.backend,
        natural_key(lane.library),
        natural_key(lane.toolkit),
        target_key(lane.target),
    )


_LISTED = 3

Good = Callable[[Lane, LaneOutcome], "bool | None"]


@dataclass(frozen=True, kw_only=True)
class LaneGroup:
    """Lanes with one history.

    Parameters
    ----------
    name : str
        Label that separates the lanes from the others; empty without others.
    lanes : tuple of Lane
        The lanes.
    history : Mapping[int, LaneOutcome or None]
        Outcomes by place of the release.
    """

    name: str
    lanes: tuple[Lane, ...]
    history: Mapping[int, LaneOutcome | None]


@dataclass(frozen=True, kw_only=True)
class BorderSentence:
    """A border with all its lanes.

    Parameters
    ----------
    border : Border
        The border.
    name : str
        Label that separates its lanes from the others.
    lanes : tuple of Lane
        The lanes.
    kind : str
        ``broke``, ``fixed`` or ``changed``.
    sentence : str
        Sentence without the lanes.
    """

    border: Border
    name: str
    lanes: tuple[Lane, ...]
    kind: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Results of a search so far.

    Parameters
    ----------
    over : str
        Axis of the search, in the user's spelling.
    versions : sequence of str
        All releases, oldest first; for a checkout the full names of commits.
    names : sequence of str
        Names of the releases in tables and sentences.
    called : callable
        Name of a release at the start of a sentence: ``numba 0.59.0`` for ``0.59.0``.
    tried : sequence of int
        Places of the tested releases.
    reasons : Mapping[int, str]
        Reasons why releases were untestable, by place.
    lacking : Mapping
        Reasons why single cells were untestable, by place and lane.
    groups : sequence of LaneGroup
        Lanes and their outcomes.
    borders : sequence of BorderSentence
        The borders.
    contradiction : str
        Sentence on outcomes that contradict the user's ends; empty otherwise.
    interrupted : bool
        Whether the search ended early.
    """

    over: str
    versions: Sequence[str]
    names: Sequence[str]
    called: Callable[[str], str]
    tried: Sequence[int]
    reasons: Mapping[int, str]
    groups: Sequence[LaneGroup]
    borders: Sequence[BorderSentence]
    lacking: Mapping[tuple[int, Lane], str] = field(default_factory=dict)
    contradiction: str = ""
    interrupted: bool = False

    @property
    def of_commits(self) -> bool:
        """Return whether the search goes over commits instead of releases."""
        return list(self.names) != list(self.versions)

    @property
    def sides(self) -> list[str]:
        """Releases on both sides of the borders, oldest first."""
        places = {place for each in self.borders for place in (each.border.before, each.border.after)}
        return [self.versions[place] for place in sorted(places)]

    @property
    def answered(self) -> bool:
        """Return whether a compiler ran to a result for any release."""
        return any(
            outcome and outcome.status != Status.UNSUPPORTED
            for group in self.groups
            for outcome in group.history.values()
        )


def groups_of(outcomes: Mapping[tuple[int, Lane], LaneOutcome], good: Good) -> list[LaneGroup]:
    """Group the lanes by history.

    Parameters
    ----------
    outcomes : Mapping
        Outcomes by place and lane.
    good : callable
        Whether an outcome of a lane is good; None if unknown.
    """
    lanes = sorted({lane for _, lane in outcomes}, key=lane_order)
    places = sorted({place for place, _ in outcomes})
    alike: dict[object, list[Lane]] = {}
    for lane in lanes:
        found = [outcomes.get((place, lane)) for place in places]
        alike.setdefault(tuple(each and (each.key, good(lane, each)) for each in found), []).append(lane)
    return [
        LaneGroup(
            name=name_of(several, lanes),
            lanes=tuple(several),
            history={place: outcomes.get((place, several[0])) for place in places},
        )
        for several in alike.values()
    ]


def tell(
    versions: Sequence[str],
    groups: Sequence[LaneGroup],
    borders: Callable[[Lane], Iterable[Border]],
    called: Callable[[str], str],
    good: Good,
) -> list[BorderSentence]:
    """Return a sentence per border, oldest first, for all its lanes; each message appears once.

    Parameters
    ----------
    versions : sequence of str
        Releases, oldest first.
    groups : sequence of LaneGroup
        Lanes and their outcomes.
    borders : callable
        Borders of a lane.
    called : callable
        Name of a release in a sentence: ``numba 0.59.0``.
    good : callable
        As for `groups_of`.
    """
    alike: dict[tuple[object, ...], list[tuple[Border, _Change, LaneGroup]]] = {}
    for group in groups:
        lane = group.lanes[0]
        for border in borders(lane):
            before, after = group.history[border.before], group.history[border.after]
            assert before is not None and after is not None
            earlier = [each.key for place, each in group.history.items() if each and place < border.before]
            change = _Change(before, after, good(lane, before), good(lane, after), after.key in earlier)
            alike.setdefault((border.after, border.before, before.key, after.key, change.kind), []).append(
                (border, change, group)
            )
    every = [lane for group in groups for lane in group.lanes]
    shown: set[object] = set()
    found = []
    for key in sorted(alike, key=lambda key: (key[0], key[1])):
        border, change, _ = alike[key][0]
        lanes = tuple(lane for _, _, group in alike[key] for lane in group.lanes)
        short = change.before.key in shown and change.before.status != Status.UNSUPPORTED
        old = change.before.brief if short else change.before.text
        sentence = f"{called(versions[border.after])}{_unknown(border, versions)} {change.text}; {versions[border.before]}: {old}"
        shown |= {change.before.key, change.after.key}
        found.append(
            BorderSentence(border=border, name=name_of(lanes, every), lanes=lanes, kind=change.kind, sentence=sentence)
        )
    return found


@dataclass(frozen=True)
class _Change:
    """A change between two outcomes; `back` if the new outcome occurred earlier in the history."""

    before: LaneOutcome
    after: LaneOutcome
    was_good: bool | None
    is_good: bool | None
    back: bool

    @property
    def kind(self) -> str:
        if None in (self.was_good, self.is_good) or self.was_good == self.is_good:
            return "changed"
        return "broke" if self.was_good else "fixed"

    @property
    def text(self) -> str:
        before, after = self.before, self.after
        if self.kind != "changed":
            return f"{self.kind} it: {after.text}"
        if before.status == after.status:
            return f"says something else: {after.text}"
        if after.status == Status.UNSUPPORTED:
            return f"does not take it any more ({after.words})"
        verb = ENDINGS[after.status].of_tool + (" again" if self.back else "")
        at = f" at {after.stage}" if after.stage and after.status != Status.BUILT else ""
        return f"{verb}{at}: {after.words}" if after.words else f"{verb}{at}"


def _unknown(border: Border, versions: Sequence[str]) -> str:
    """Name the untested releases between, which may have brought the change as well."""
    if not border.between:
        return ""
    names = [versions[place] for place in border.between]
    return f" (or {spell(names, whole=_LISTED)}, which gave no answer)"


_CUDA = "https://docs.nvidia.com/cuda/archive/{}.0/cuda-toolkit-release-notes/index.html"


def release_notes(over: str, version: str) -> str:
    """Return the address of the release notes; empty if unknown.

    Parameters
    ----------
    over : str
        Axis of the search: ``numba``, ``cuda``, ``headers``, …
    version : str
        The release.
    """
    if over in ("cuda", "headers"):
        return _CUDA.format(version)
    try:
        public = Version(version).public
    except InvalidVersion:
        return ""
    entry = LIBRARIES.get(over) or HEADERS.get(over)
    return entry.notes.format(public) if entry else ""
