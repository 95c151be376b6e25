"""Text of bless: the reason of a new expectation, and the gaps of the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from harness.backends import BACKENDS
from harness.bless.evidence import Evidence, Seen
from harness.diagnostics import one_line
from harness.matrix.order import target_key, version_key
from harness.model import Cell

_SHOWN = 3

UNTOLD = "observed"
"""With this word the reason of a new expectation begins."""


def observed(cells: Sequence[Seen], dates: Mapping[str, str]) -> str:
    """``observed on 2026-11-22 with nvrtc, CUDA 12.4 to 13.0, sm_50 to sm_75; write here why it is so``."""
    tools: dict[str, set[str]] = {}
    for each in cells:
        tools.setdefault(each.cell.toolchain.backend, set()).add(each.cell.toolchain.library)
    with_ = ", ".join(
        f"{backend} {_range(sorted(filter(None, versions), key=version_key))}".strip()
        for backend, versions in sorted(tools.items())
    )
    releases = sorted(
        {str(each.cell.toolchain.toolkit) for each in cells}, key=lambda text: version_key(text.split("+")[0])
    )
    targets = sorted({str(each.cell.target) for each in cells}, key=target_key)
    days = sorted({dates[each.run] for each in cells if each.run in dates})
    when = f" on {_range(days)}" if days else ""
    return f"{UNTOLD}{when} with {with_}, CUDA {_range(releases)}, {_range(targets)}; write here why it is so"


def _range(items: Sequence[str]) -> str:
    if len(items) < 3:
        return " and ".join(items)
    return f"{items[0]} to {items[-1]}"


def left_open(evidence: Evidence, untried: Sequence[int]) -> Iterator[str]:
    """Describe the cells without evidence, one sentence each.

    Parameters
    ----------
    evidence : Evidence
        Of one case.
    untried : sequence of int
        Numbers of expectations that hold for none of its cells.
    """
    case = evidence.case
    if evidence.missing:
        yield f"{_cells(len(evidence.missing))} of the plan never arrived: {_some(evidence.missing)}"
    if evidence.unsupported:
        yield f"{_cells(len(evidence.unsupported))} unsupported: nothing is expected of them"
    if evidence.stale:
        yield f"{_cells(evidence.stale)} of variants that the case does not have any more: left out"
    asked = [*(each.cell for each in evidence.seen), *evidence.unsupported]
    backends = [info.name for info in BACKENDS.values() if info.language(case)]
    if other := [name for name in backends if name not in {cell.toolchain.backend for cell in asked}]:
        yield f"not tried: {', '.join(other)}"
    if variants := [each.name for each in case.variants if each.name not in {cell.variant.name for cell in asked}]:
        yield f"not tried: {len(variants):,} of {len(case.variants):,} variants: {_some(variants)}"
    yield from _gaps(evidence)
    if untried:
        lines = ", ".join(str(case.expectations[place].line) for place in untried)
        what = "the expectation in line {} holds" if len(untried) == 1 else "the expectations in lines {} hold"
        yield f"{what.format(lines)} first for no cell that was tried: left as it is"


def _gaps(evidence: Evidence) -> Iterator[str]:
    """Untried combinations of tried values."""
    known = {_spot(each.cell) for each in evidence.seen}
    unsupported = {_spot(cell) for cell in evidence.unsupported}
    variants = dict.fromkeys(spot[0] for spot in known)
    toolchains = dict.fromkeys(spot[1] for spot in known)
    targets = dict.fromkeys(spot[2] for spot in known)
    count = len(variants) * len(toolchains) * len(targets) - len(
        known | {spot for spot in unsupported if spot[0] in variants and spot[1] in toolchains and spot[2] in targets}
    )
    if count > 0 and len(known) * 20 > count:
        gaps = (
            spot for spot in product(variants, toolchains, targets) if spot not in known and spot not in unsupported
        )
        first = next(gaps)
        yield f"{_cells(count)} between those that were tried, such as {' '.join(filter(None, first))}"


def _spot(cell: Cell) -> tuple[str, str, str]:
    toolchain = cell.toolchain
    return (cell.variant.name, f"{toolchain.name} {toolchain.host.name}".rstrip(), str(cell.target))


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(one_line, names[:_SHOWN])) + (", …" if len(names) > _SHOWN else "")


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count:,} cells"
