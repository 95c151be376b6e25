"""One feature: sentences, a table over versions, and untried combinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.answers.answer import FeatureFinding, finding_of, tool_label
from harness.answers.cells import Entry, Known
from harness.answers.query import Query
from harness.answers.question import version_of
from harness.answers.table import FeatureRow, known_releases, lines_of
from harness.answers.verdict import SILENT, WORKS
from harness.backends import library_of
from harness.matrix.axes import fold_targets, version_key
from harness.matrix.ranges import consecutive, ranges, spell
from harness.toolkits.header_libraries import LIBRARIES

SHORT = 5
"""Tools that the line of a shared link names."""


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """A tool, some of its versions, and for each CUDA release where it works.

    Parameters
    ----------
    tool, versions : str
        ``CuPy``, and ``13.1.0 to 14.2.0``; empty for a tool without versions of its own.
    cells : tuple of (str, str)
        By CUDA release: ``works``, ``part``, ``never`` or nothing, and the architectures: ``from sm_80``.
    """

    tool: str
    versions: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Variants with the same findings on every architecture.

    Parameters
    ----------
    finding : FeatureFinding
        What is known, in sentences, with the proof.
    rows : tuple of VersionRow
        The table over versions.
    """

    finding: FeatureFinding
    rows: tuple[VersionRow, ...]


@dataclass(frozen=True, kw_only=True)
class FeaturePage:
    """The opening of a feature's page.

    Parameters
    ----------
    variants : tuple of Variant
        Each group of variants.
    toolkits : tuple of str
        CUDA releases: columns of the tables.
    untried : tuple of str
        Known untried releases: ``CUDA 12.1 to 12.3``, ``cupy 13.2.0 to 13.5.1``.
    """

    variants: tuple[Variant, ...]
    toolkits: tuple[str, ...]
    untried: tuple[str, ...]

    @property
    def try_them(self) -> str:
        """Options of ``cumatrix run`` for the untried combinations."""
        names = [item.partition(" ")[0] for item in self.untried]
        options = {name: f" --library {name}=all" for name in LIBRARIES}
        options |= {"CUDA": " -t all", **dict.fromkeys(("gcc", "clang"), " --host-compiler all"), "glibc": ""}
        return "".join(dict.fromkeys(options.get(name, f" --with {name}=all") for name in names))

    @property
    def short(self) -> str:
        """A short summary: ``NVRTC: works since CUDA 12.0, Numba: never``."""
        said = [f"{said.tool}: {said.verdict.text}" for variant in self.variants for said in variant.finding.said]
        return ", ".join(list(dict.fromkeys(said))[:SHORT]) or "not tried"


def feature_page(known: Known, case: str) -> FeaturePage:
    """All that is known of a case."""
    targets = [target for target in known.targets if target.startswith("sm_")]
    lines = lines_of(known, targets, case)
    entries = [entry for entry in known.entries_of(case) if entry.answered]
    toolkits = sorted({toolkit for entry in entries for toolkit in _tried(entry)[1]}, key=version_key)
    variants = [_variant(line, known, toolkits) for line in lines]
    return FeaturePage(
        variants=tuple(variant for variant in variants if variant.finding.said),
        toolkits=tuple(toolkits),
        untried=tuple(_untried(entries, toolkits)),
    )


def _variant(line: FeatureRow, known: Known, toolkits: Sequence[str]) -> Variant:
    finding = finding_of(line, Query(chips=()), known, {})
    entries = {(field.entry.tool, field.entry.axis): field.entry for field in line.fields}
    rows = [row for entry in entries.values() for row in _rows(entry, toolkits)]
    return Variant(finding=finding, rows=tuple(rows))


def _rows(entry: Entry, toolkits: Sequence[str]) -> list[VersionRow]:
    versions, _ = _tried(entry)
    found = [(version, tuple(_cell(entry, version, toolkit) for toolkit in toolkits)) for version in versions]
    return [VersionRow(tool=tool_label(entry), versions=spell(run.values), cells=run.outcome) for run in ranges(found)]


def _cell(entry: Entry, version: str, toolkit: str) -> tuple[str, str]:
    """The architectures that work with these versions."""
    rows = {
        target: row
        for target in entry.grids
        if (row := entry.proofs.get((version, toolkit, target)))
        and row.letter not in SILENT
        and target.startswith("sm_")
    }
    if not rows:
        return "", ""
    works = [target for target, row in rows.items() if row.letter == WORKS]
    every = list(rows)
    if len(works) == len(every):
        return "works", "all" if len(every) > 1 else every[0]
    if not works:
        return "never", "none" if len(every) > 1 else f"not {every[0]}"
    plain = [target for target in every if target[-1].isdigit()]
    own = [target for target in works if target[-1].isdigit()]
    above = own and every[every.index(own[0]) :] == works and own == plain[-len(own) :]
    return "part", f"from {own[0]}" if above else fold_targets(works, every)


def _tried(entry: Entry) -> tuple[list[str], list[str]]:
    rows = [row for row in entry.proofs.values() if row.letter not in SILENT]
    return sorted({row.version for row in rows}, key=version_key), sorted(
        {row.toolkit for row in rows}, key=version_key
    )


def _untried(entries: Sequence[Entry], toolkits: Sequence[str]) -> list[str]:
    """Known releases within what was tried, and newer ones, of CUDA and of each library."""
    tried: dict[str, set[str]] = {"cuda": set(toolkits)}
    for entry in entries:
        library = entry.axis or library_of(entry.backend)
        if library:
            tried.setdefault(library, set()).update(_tried(entry)[0])
    said = []
    for name, versions in tried.items():
        known = known_releases().get(name, ())
        numbers = [version_of(version) for version in versions if version_of(version)]
        missing = {item for item in known if item not in versions and numbers and version_of(item) > min(numbers)}
        if missing:
            said.append(f"{'CUDA' if name == 'cuda' else name} {', '.join(map(spell, consecutive(missing, known)))}")
    return said
