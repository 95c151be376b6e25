"""The newest release of CUDA and of each library: breakage shown by cells that differ in that release alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.answers.answer import tool_label
from harness.answers.cells import Entry, Known, is_host
from harness.answers.comparison import Comparison, Pair
from harness.answers.replies import release_label
from harness.answers.verdict import WORKS
from harness.answers.vocabulary import variant_label
from harness.libraries import companions_of
from harness.libraries import label_of as library_label
from harness.matrix.axes import spell_targets
from harness.records import Merged
from harness.toolkits.header_libraries import LIBRARIES as HEADERS

_NAMED = 3
"""Variants that a line names."""


@dataclass(frozen=True, kw_only=True)
class Breakage:
    """A feature that the release before builds, and this one does not.

    Parameters
    ----------
    case, title : str
        The feature.
    label : str
        Its variants, where only some are affected, and few.
    tools : str
        ``NVRTC on sm_80–sm_120; nvcc on sm_80``.
    message : str
        What a compiler said.
    """

    case: str
    title: str
    label: str
    tools: str
    message: str


@dataclass(frozen=True, kw_only=True)
class NewRelease:
    """The newest tried release of CUDA or of a library, against the tried release before it.

    Parameters
    ----------
    name, version, before : str
        ``cuda`` or the library; both releases.
    pairs : int
        Pairs of cells that differ in the release alone; the first one builds.
    failed : int
        Those whose second cell does not build.
    broken : tuple of Breakage
        The same, by feature.
    dropped : tuple of str
        Architectures that CUDA does not know any more.
    updated : str
        The newest start of a run with the second cell of a pair; may be empty.
    """

    name: str
    version: str
    before: str
    pairs: int
    failed: int
    broken: tuple[Breakage, ...]
    dropped: tuple[str, ...]
    updated: str

    @property
    def label(self) -> str:
        """``CUDA 13.5``."""
        return release_label(self.name, self.version)

    @property
    def finding(self) -> str:
        """``breaks 2 features``."""
        if self.broken:
            return f"breaks {len(self.broken):,} feature{'s' if len(self.broken) > 1 else ''}"
        if self.pairs:
            return "breaks nothing that was tried"
        return f"cannot be compared: no cell differs from one that {self.before} builds in the release alone"

    @property
    def basis(self) -> str:
        """``30 of 4,970 pairs that build with 13.4``: the compared cells; empty without any."""
        if not self.pairs:
            return ""
        part = f"{self.failed:,} of " if self.broken else ""
        own = " and ".join(map(library_label, companions_of(self.name)))
        more = f", each with its own {own}" if own else ""
        more += f"; no longer builds for {spell_targets(self.dropped)}" if self.dropped else ""
        pairs = "pair that builds" if self.pairs == 1 else "pairs that build"
        return f"{part}{self.pairs:,} {pairs} with {self.before}{more}"

    @property
    def question(self) -> str:
        """A question whose reply lists the same changes."""
        return f"what breaks between {release_label(self.name, self.before)} and {self.version}"


def new_releases(known: Known, itself: Known, merged: Merged) -> list[NewRelease]:
    """The newest release of CUDA and of each library and header library.

    Those that break something come first, those without a pair last; CUDA before libraries, and those before header libraries.

    Parameters
    ----------
    known : Known
        The cells.
    itself : Known
        The same about architectures (`harness.answers.answer.known_of_itself`).
    merged : Merged
        Their records, for the host compilers and the times of runs.
    """
    comparison = Comparison(known)
    records = {record["cell"]: record for record in merged.records}
    found = []
    for name, releases in comparison.releases.items():
        before = comparison.previous(name, releases[-1])
        if not before or is_host(name):
            continue
        version = releases[-1]
        pairs = [
            pair
            for pair in comparison.pairs(name, before, version)
            if pair.before.letter == WORKS and _hosts(records, pair)
        ]
        failed = [pair for pair in pairs if pair.breaks]
        runs = {str(records[pair.after.cell].get("run", "")) for pair in pairs}
        found.append(
            NewRelease(
                name=name,
                version=version,
                before=before,
                pairs=len(pairs),
                failed=len(failed),
                broken=tuple(_breakages(failed, known)),
                dropped=_dropped(itself, before, version) if name == "cuda" else (),
                updated=max((known.runs.get(run, "") for run in runs), default=""),
            )
        )
    return sorted(found, key=lambda item: (not item.broken, not item.pairs, item.name != "cuda", item.name in HEADERS))


def _dropped(itself: Known, before: str, version: str) -> tuple[str, ...]:
    """Architectures that one CUDA release knows, and the other does not."""
    built: dict[tuple[str, str], bool] = {}
    for row in itself.rows:
        place = row.target, row.toolkit
        built[place] = built.get(place, False) or row.letter == WORKS
    return tuple(
        target for target in itself.targets if built.get((target, before)) and built.get((target, version)) is False
    )


def _hosts(records: Mapping[str, Mapping[str, Any]], pair: Pair) -> bool:
    """Return whether both cells have the same host compiler and C library."""
    first, second = (records[row.cell]["toolchain"]["requested"].get("host_compiler") for row in (pair.before, pair.after))  # fmt: skip
    return bool(first == second)


def _breakages(pairs: Sequence[Pair], known: Known) -> list[Breakage]:
    by_case: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_case.setdefault(pair.after.case, []).append(pair)
    return [_breakage(case, by_case[case], known) for case in known.features if case in by_case]


def _breakage(case: str, pairs: Sequence[Pair], known: Known) -> Breakage:
    targets: dict[str, dict[str, None]] = {}
    for pair in pairs:
        row = pair.after
        tool = tool_label(Entry(case=case, rest=row.rest, tool=row.tool, axis=row.axis, grids={}, proofs={}))
        targets.setdefault(tool, {})[row.target] = None
    variants = dict.fromkeys(pair.after.rest for pair in pairs)
    every = {entry.rest for entry in known.entries_of(case)}
    named = len(variants) < len(every) and len(variants) <= _NAMED
    return Breakage(
        case=case,
        title=known.features[case].title,
        label="; ".join(variant_label(case, variant) for variant in variants) if named else "",
        tools="; ".join(f"{tool} on {spell_targets(of)}" for tool, of in targets.items()),
        message=pairs[-1].after.message,
    )
