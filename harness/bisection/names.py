"""A label that separates some cells from the others of a search: ``[cache=true] numba sm_50–sm_80``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.bisection.seen import Lane
from harness.matrix.order import fold_targets, natural_key, target_key

_LISTED = 3


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
