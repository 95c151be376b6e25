"""The Atom feed (RFC 4287): breakage in new releases, and regressions of the history.

The same cells give the same bytes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from harness.analysis.diff import Change, changes
from harness.analysis.history import History
from harness.answers.answer import tool_label
from harness.answers.cells import Entry, Known, is_host
from harness.answers.comparison import Comparison, Pair
from harness.answers.replies import release_label
from harness.answers.verdict import WORKS
from harness.answers.vocabulary import variant_label
from harness.libraries import companions_of
from harness.libraries import label_of as library_label
from harness.matrix.axes import spell_targets
from harness.protocol.text import one_line, safe_link
from harness.records import Merged
from harness.report.junit import xml_text
from harness.toolkits.header_libraries import LIBRARIES as HEADERS

_NAMED = 3
"""Maximum number of variants in a line."""


@dataclass(frozen=True, kw_only=True)
class Breakage:
    """A feature that the previous release builds, and this one does not.

    Parameters
    ----------
    case, title : str
        The feature.
    label : str
        Its variants, if only a few of them are affected.
    tools : str
        ``NVRTC on sm_80–sm_120; nvcc on sm_80``.
    message : str
        The compiler's message.
    """

    case: str
    title: str
    label: str
    tools: str
    message: str


@dataclass(frozen=True, kw_only=True)
class NewRelease:
    """The newest tried release of CUDA or of a library, compared with the tried release before it.

    Parameters
    ----------
    name, version, before : str
        ``cuda`` or the library; both releases.
    pairs : int
        Pairs of cells that differ only in the release, and whose first cell builds.
    failed : int
        Pairs whose second cell does not build.
    broken : tuple of Breakage
        These pairs, by feature.
    dropped : tuple of str
        Architectures that the CUDA release no longer supports.
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
        """The label of the release: ``CUDA 13.5``."""
        return release_label(self.name, self.version)

    @property
    def finding(self) -> str:
        """The finding in words: ``breaks 2 features``."""
        if self.broken:
            return f"breaks {len(self.broken):,} feature{'s' if len(self.broken) > 1 else ''}"
        if self.pairs:
            return "breaks nothing that was tried"
        return f"cannot be compared: no cell differs from one that {self.before} builds in the release alone"

    @property
    def basis(self) -> str:
        """The compared cells: ``30 of 4,970 pairs that build with 13.4``. Empty without any."""
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
    """Return the newest release of CUDA and of each library and header library.

    Releases with breakage come first, and releases without a pair last. Within these, CUDA precedes libraries, and
    libraries precede header libraries.

    Parameters
    ----------
    known : Known
        The cells.
    itself : Known
        The cells reduced to support for architectures (`harness.answers.answer.known_of_itself`).
    merged : Merged
        The records of the cells, for the host compilers and the start of runs.
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
    """Return the architectures that only the first of two CUDA releases supports."""
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


FEED = "regressions.atom"
"""File of the feed."""

_ATOM = "http://www.w3.org/2005/Atom"
_LISTED = 100
_FIRST = "1970-01-01T00:00:00+00:00"


@dataclass(frozen=True, kw_only=True)
class FeedEntry:
    """The regressions of one run of an environment, compared with the environment's previous run."""

    run: str
    before: str
    environment: str
    started: str
    commit: str
    regressions: tuple[Change, ...]


def entries_of(history: History, *, last: int = 30) -> tuple[FeedEntry, ...]:
    """Return runs with regressions, newest first.

    Parameters
    ----------
    history : History
        The history, with all columns (`harness.analysis.history.read_history` without `columns`).
    last : int
        The number of runs of each environment to compare.
    """
    table = history.table
    firsts = table.drop_duplicates("run")[["run", "environment", "started", "commit"]]
    parts = {run: part for run, part in table.groupby("run", sort=False)}  # noqa: C416 - dict() would take `keys` of the groups for a method
    found = []
    for environment, runs in firsts.groupby("environment", sort=False):
        rows = list(runs.itertuples(index=False))[-last - 1 :]
        for old, new in pairwise(rows):
            failed = parts[new.run][parts[new.run]["verdict"] == "fail"]  # nothing else can be a regression
            known = parts[old.run][parts[old.run]["cell"].isin(failed["cell"])]
            bad = changes(known, failed).regressions
            if bad:
                found.append(
                    FeedEntry(
                        run=new.run,
                        before=old.run,
                        environment=str(environment),
                        started=new.started,
                        commit=new.commit,
                        regressions=bad,
                    )
                )
    return tuple(sorted(found, key=lambda entry: (_time(entry.started), entry.run), reverse=True))


def atom_feed(
    entries: Sequence[FeedEntry],
    releases: Sequence[NewRelease] = (),
    *,
    title: str = "Regressions of cumatrix",
    address: str = "",
) -> bytes:
    """Return the content of `FEED`.

    Parameters
    ----------
    entries : sequence of FeedEntry
        Regressions.
    releases : sequence of NewRelease
        New releases. A release without comparable cells has no entry.
    title : str
        The title of the feed.
    address : str, optional
        The published address of the report, for links. Without it the feed has none.
    """
    ET.register_namespace("", _ATOM)
    root = ET.Element(f"{{{_ATOM}}}feed")
    _text(root, "title", title)
    _text(root, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'cumatrix:{address or title}')}")
    link = safe_link(address)
    found = [(_time(entry.started), entry.run, _entry(entry, link)) for entry in entries]
    found += [(_time(item.updated), item.label, _release(item, link)) for item in releases if item.pairs]
    found.sort(key=lambda item: item[:2], reverse=True)
    _text(root, "updated", found[0][0].isoformat() if found else _FIRST)
    _text(ET.SubElement(root, f"{{{_ATOM}}}author"), "name", "cumatrix")
    if link:
        ET.SubElement(root, f"{{{_ATOM}}}link", rel="alternate", href=link)
        ET.SubElement(root, f"{{{_ATOM}}}link", rel="self", href=f"{link.rstrip('/')}/{FEED}")
    root.extend(element for *_, element in found)
    ET.indent(root, " ")
    text: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return text + b"\n"


def _entry(entry: FeedEntry, link: str) -> ET.Element:
    count = len(entry.regressions)
    commit = f", commit {entry.commit[:12]}" if entry.commit else ""
    return _element(
        title=f"{count} regression{'s' if count > 1 else ''} in {entry.environment or 'cumatrix'}{commit}",
        name=f"{entry.before}:{entry.run}:{entry.environment}",
        updated=entry.started,
        link=link,
        content=_html(entry),
    )


def _release(item: NewRelease, link: str) -> ET.Element:
    return _element(
        title=one_line(f"{item.label} {item.finding}"),
        name=f"release:{item.name}:{item.version}",
        updated=item.updated,
        link=f"{link}#ask={quote(item.question)}" if link else "",
        content=_release_html(item),
    )


def _element(*, title: str, name: str, updated: str, link: str, content: Iterable[str]) -> ET.Element:
    element = ET.Element(f"{{{_ATOM}}}entry")
    _text(element, "title", title)
    _text(element, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'cumatrix:{name}')}")
    _text(element, "updated", _time(updated).isoformat())
    if link:
        ET.SubElement(element, f"{{{_ATOM}}}link", rel="alternate", href=link)
    text = _text(element, "content", "".join(content))
    text.set("type", "html")
    return element


def _release_html(item: NewRelease) -> Iterable[str]:
    """Yield our own markup, with all foreign text escaped."""
    yield f"<p>{escape(item.label)} {escape(item.finding)} ({escape(item.basis)}).</p>"
    if item.broken:
        lines = (
            " ".join(filter(None, (f"{each.title or each.case}:", each.label and f"{each.label},", f"{each.tools}:")))
            + f" {each.message}"
            for each in item.broken[:_LISTED]
        )
        yield f"<ul>{''.join(f'<li>{escape(one_line(line, 400))}</li>' for line in lines)}</ul>"
    if len(item.broken) > _LISTED:
        yield f"<p>… and {len(item.broken) - _LISTED} more.</p>"


def _html(entry: FeedEntry) -> Iterable[str]:
    """Yield our own markup, with all foreign text escaped. The feed's writer escapes the whole markup again."""
    yield f"<p>Run {escape(one_line(entry.run))} against {escape(one_line(entry.before))}.</p><ul>"
    for item in entry.regressions[:_LISTED]:
        old = item.old.outcome if item.old else ""
        new, message = (item.new.outcome, item.new.message) if item.new else ("", "")
        message_html = f": <code>{escape(one_line(message, 200))}</code>" if message else ""
        yield f"<li>{escape(one_line(item.cell))}: {escape(old)} → {escape(new)}{message_html}</li>"
    yield "</ul>"
    if len(entry.regressions) > _LISTED:
        yield f"<p>… and {len(entry.regressions) - _LISTED} more.</p>"


def _text(parent: ET.Element, name: str, text: str) -> ET.Element:
    element = ET.SubElement(parent, f"{{{_ATOM}}}{name}")
    element.text = xml_text(text)
    return element


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = datetime.fromisoformat(_FIRST)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
