"""Findings about one feature: current support, current breakage, and the latest changes by release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from harness.answers.answer import finding_of, sentence_of, tool_label
from harness.answers.cells import Entry, Known, Row
from harness.answers.query import FeatureFinding, Query
from harness.answers.question import version_of
from harness.answers.table import FeatureRow, lines_of, releases_like
from harness.answers.verdict import FAULT, SILENT, SURPRISE, WORKS, Places, VersionGrid
from harness.answers.vocabulary import variant_label
from harness.backends import label_of, library_of
from harness.matrix.axes import is_real, spell_targets, version_key
from harness.matrix.ranges import consecutive, ranges, spell, spell_tried
from harness.toolkits.header_libraries import LIBRARIES

LISTED = 3
"""The maximum number of listed changes per release."""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A feature that should work in the newest versions, but does not.

    Parameters
    ----------
    case, reason, link : str
        The case, the reason, and the link to the upstream report. For a surprise, the reason is the compiler's message.
    tools, targets : str
        The affected tools and targets.
    """

    case: str
    reason: str
    link: str
    tools: str
    targets: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """A case that started or stopped to work with a release.

    Parameters
    ----------
    release, case : str
        ``CUDA 13.0``, and the case.
    works : bool
        Whether it works from this release on.
    tools : str
        Tools, architectures, and the release tried before.
    label : str
        Variants, if the change affects only some of the case's variants.
    """

    release: str
    case: str
    works: bool
    tools: str
    label: str = ""


def current_breakage(known: Known, reasons: Mapping[str, tuple[str, str]]) -> list[Broken]:
    """Return the current faults of the newest tried versions, surprises first, then in the order of the matrix.

    The newest version is the newest one of a program on any architecture. A fault of an earlier version is not current,
    even if that version is the last one tried on its architecture.

    Parameters
    ----------
    known : Known
        The tried cells.
    reasons : Mapping[str, (str, str)]
        Reason and link of known faults, by id of the cell.
    """
    found: dict[tuple[bool, str, str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for entry in known.entries:
        rows = {target: row for target in entry.answered if (row := _newest(entry, target))}
        newest = max((row.version for row in rows.values()), key=version_key, default="")
        for target, row in rows.items():
            if row.version == newest and row.letter in (FAULT, SURPRISE):
                surprise = row.letter == SURPRISE
                reason, link = reasons.get(row.cell, (row.message, ""))
                tools, targets = found.setdefault((not surprise, entry.case, reason, link), ({}, {}))
                tools[tool_label(entry)] = targets[target] = None
    return [
        Broken(case=case, reason=f"{'' if known_fault else 'Not as expected: '}{reason}", link=link, tools=", ".join(tools), targets=spell_targets(targets))
        for (known_fault, case, reason, link), (tools, targets) in sorted(found.items(), key=lambda item: item[0][0])
    ]  # fmt: skip


def latest_changes(known: Known) -> list[Change]:
    """Return some changes of the newest releases of each tool and of CUDA that started or stopped to build something."""
    found: dict[tuple[str, str], dict[tuple[str, bool], _Change]] = {}
    variants: dict[str, set[str]] = {}
    for entry in known.entries:
        variants.setdefault(entry.case, set()).add(entry.rest)
        for target in entry.answered:
            for axis, before, version, works in _borders(entry, entry.grids[target]):
                change = found.setdefault((axis, version), {}).setdefault((entry.case, works), _Change())
                change.variants[entry.rest] = None
                change.targets.setdefault((tool_label(entry), before), {})[target] = None
    newest: dict[str, list[str]] = {}
    for axis, version in sorted(found, key=lambda item: version_key(item[1]), reverse=True):
        newest.setdefault(axis, []).append(version)
    return [
        Change(
            release=f"{axis} {version}",
            case=case,
            works=works,
            tools=change.tools,
            label=change.label(case, variants[case]),
        )
        for axis, versions in sorted(newest.items(), key=lambda item: item[0] != "CUDA")
        for version in versions[:2]
        for (case, works), change in list(found[axis, version].items())[:LISTED]
    ]


@dataclass(frozen=True)
class _Change:
    """Changes: variants, and architectures by tool and previous release."""

    variants: dict[str, None] = field(default_factory=dict)
    targets: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    @property
    def tools(self) -> str:
        """``CuPy on sm_80–sm_120, after 13.6.0``."""
        return "; ".join(
            f"{tool} on {spell_targets(targets)}, after {before}" for (tool, before), targets in self.targets.items()
        )

    def label(self, case: str, of_case: Collection[str]) -> str:
        """Return the variants if the case has others, and if they are few enough to read."""
        if len(self.variants) >= len(of_case) or len(self.variants) > LISTED:
            return ""
        return "; ".join(variant_label(case, variant) for variant in self.variants)


def _newest(entry: Entry, target: str) -> Row | None:
    grid = entry.grids[target]
    for place in range(len(grid.letters) - 1, -1, -1):
        if grid.letters[place] not in SILENT:
            library, toolkit = divmod(place, len(grid.toolkits))
            return entry.proofs[grid.libraries[library], grid.toolkits[toolkit], target]
    return None


def _borders(entry: Entry, grid: VersionGrid) -> list[tuple[str, str, str, bool]]:
    """Return axis, previous release, release, and whether the program builds from there on.

    Each change follows from two cells that differ only in that axis.
    """
    library = entry.axis or (label_of(entry.backend) if library_of(entry.backend) else "")
    places = Places(grid.answered())
    found = []
    for number, axis in enumerate((library, "CUDA")):
        claims = places.changes(number)[1] if axis else ()
        found += [(axis, claim.before[number], claim.after[number], claim.builds) for claim in claims]
    return found


SHORT = 5
"""The maximum number of tools in the description of a shared link."""


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """A tool and some of its versions, with the architectures that work for each CUDA release.

    Parameters
    ----------
    tool, versions : str
        ``CuPy``, and ``13.1.0 to 14.2.0``. The versions are empty for a tool without versions of its own.
    cells : tuple of (str, str)
        For each CUDA release: ``works``, ``part``, ``never`` or an empty string, and the architectures (``from
        sm_80``).
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
        The finding in sentences, with the proof.
    rows : tuple of VersionRow
        The table of versions.
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
        CUDA releases, the columns of the tables.
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
    def sentence(self) -> str:
        """The answer in one sentence, about every architecture."""
        return sentence_of([item.finding for item in self.variants], ()) if self.variants else "Not tried."

    @property
    def short(self) -> str:
        """A short summary: ``NVRTC: builds since CUDA 12.0, Numba: 0 of 3``."""
        texts = [
            f"{of_tool.tool}: {of_tool.verdict.text}" for variant in self.variants for of_tool in variant.finding.tools
        ]
        return ", ".join(list(dict.fromkeys(texts))[:SHORT]) or "not tried"


def feature_page(known: Known, case: str) -> FeaturePage:
    """Return the opening of a case's page."""
    targets = [target for target in known.targets if is_real(target)]
    lines = lines_of(known, targets, case)
    entries = [entry for entry in known.entries_of(case) if entry.answered]
    toolkits = sorted({toolkit for entry in entries for toolkit in _tried(entry)[1]}, key=version_key)
    variants = [_variant(line, known, toolkits) for line in lines]
    return FeaturePage(
        variants=tuple(variant for variant in variants if variant.finding.tools),
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
    return [
        VersionRow(tool=tool_label(entry), versions=_spell(entry, run.values), cells=run.outcome)
        for run in ranges(found)
    ]


def _spell(entry: Entry, versions: Sequence[str]) -> str:
    known = releases_like(entry.axis or library_of(entry.backend), versions)
    return spell_tried([version for version in versions if version], known, version_key)


def _cell(entry: Entry, version: str, toolkit: str) -> tuple[str, str]:
    """Return the support with these versions, and the architectures that work."""
    rows = {
        target: row
        for target in entry.grids
        if (row := entry.proofs.get((version, toolkit, target))) and row.letter not in SILENT and is_real(target)
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
    return "part", f"from {own[0]}" if above else spell_targets(works)


def _tried(entry: Entry) -> tuple[list[str], list[str]]:
    rows = [row for row in entry.proofs.values() if row.letter not in SILENT]
    return sorted({row.version for row in rows}, key=version_key), sorted(
        {row.toolkit for row in rows}, key=version_key
    )


def _untried(entries: Sequence[Entry], toolkits: Sequence[str]) -> list[str]:
    """Return the known untried releases of CUDA and of each library, from the oldest tried release on."""
    tried: dict[str, set[str]] = {"cuda": set(toolkits)}
    for entry in entries:
        library = entry.axis or library_of(entry.backend)
        if library:
            tried.setdefault(library, set()).update(_tried(entry)[0])
    texts = []
    for name, versions in tried.items():
        known = releases_like(name, versions)
        numbers = [version_of(version) for version in versions if version_of(version)]
        missing = {item for item in known if item not in versions and numbers and version_of(item) > min(numbers)}
        if missing:
            texts.append(f"{'CUDA' if name == 'cuda' else name} {', '.join(map(spell, consecutive(missing, known)))}")
    return texts
