"""Sentences about a bisection: one for each border, with the lanes that change together."""

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
from harness.toolkits import LIBRARIES as HEADERS


def name_of(lanes: Iterable[Lane], among: Sequence[Lane]) -> str:
    """A label that separates some lanes from the others: ``[cache=true] sm_50–sm_80``; empty for all lanes."""
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
    """Labels that all variants of these lanes have and no other variant has: ``arch=given``; empty where there are none."""
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
        f"CUDA {lane.toolkit}" if lane.toolkit else "",
    )


def lane_order(lane: Lane) -> tuple[object, ...]:
    """Order of lanes, as in the matrix."""
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
        What tells them from the others; empty where there are no others.
    lanes : tuple of Lane
        The lanes.
    history : Mapping[int, LaneOutcome or None]
        What was seen, by place of the release.
    """

    name: str
    lanes: tuple[Lane, ...]
    history: Mapping[int, LaneOutcome | None]


@dataclass(frozen=True, kw_only=True)
class BorderSentence:
    """A border, with all its lanes, and notes.

    Parameters
    ----------
    border : Border
        Where it is.
    name : str
        What tells its lanes from the others.
    lanes : tuple of Lane
        The lanes.
    kind : str
        ``broke``, ``fixed`` or ``changed``.
    sentence : str
        In plain words, without the lanes.
    """

    border: Border
    name: str
    lanes: tuple[Lane, ...]
    kind: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that a search has found so far.

    Parameters
    ----------
    over : str
        What was searched, as users name it.
    versions : sequence of str
        All releases, oldest first; of a checkout the full names of commits.
    names : sequence of str
        What tables and sentences call them.
    called : callable
        What one is called where a sentence begins: ``numba 0.59.0`` for ``0.59.0``.
    tried : sequence of int
        Places of those that were tried.
    reasons : Mapping[int, str]
        Why some of these could not be.
    lacking : Mapping
        Why single cells could not be, by place and lane.
    groups : sequence of LaneGroup
        What was seen.
    borders : sequence of BorderSentence
        Where it changes.
    contradiction : str
        A sentence where that is not what the user says of the ends.
    interrupted : bool
        Whether the search was ended early.
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
        """Return whether commits were searched, and not releases."""
        return list(self.names) != list(self.versions)

    @property
    def sides(self) -> list[str]:
        """Releases on either side of a border, oldest first."""
        places = {place for each in self.borders for place in (each.border.before, each.border.after)}
        return [self.versions[place] for place in sorted(places)]

    @property
    def answered(self) -> bool:
        """Return whether a compiler answered for any release."""
        return any(
            outcome and outcome.status != Status.UNSUPPORTED
            for group in self.groups
            for outcome in group.history.values()
        )


def groups_of(outcomes: Mapping[tuple[int, Lane], LaneOutcome], good: Good) -> list[LaneGroup]:
    """Lanes together that have one history.

    Parameters
    ----------
    outcomes : Mapping
        What was seen, by place and lane.
    good : callable
        Whether an outcome is as it should be; None where that is not said.
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
    """Every border once, oldest first, for all its lanes; each message appears once.

    Parameters
    ----------
    versions : sequence of str
        Releases, oldest first.
    groups : sequence of LaneGroup
        What was seen.
    borders : callable
        Borders of a lane.
    called : callable
        What a release is called in a sentence: ``numba 0.59.0``.
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
    """From one outcome to another; `back` where the same was seen still earlier."""

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
    """The releases between that a change may have come with as well."""
    if not border.between:
        return ""
    names = [versions[place] for place in border.between]
    return f" (or {spell(names, whole=_LISTED)}, which gave no answer)"


_CUDA = "https://docs.nvidia.com/cuda/archive/{}.0/cuda-toolkit-release-notes/index.html"


def release_notes(over: str, version: str) -> str:
    """Address of the release notes; empty where none is known.

    Parameters
    ----------
    over : str
        What is searched: ``numba``, ``cuda``, ``headers``, …
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
