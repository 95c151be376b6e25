"""An Atom feed (RFC 4287) of new releases with what they break, and of regressions out of a history: the same cells give the same bytes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from harness.analysis.diff import Change, changes
from harness.analysis.history import History
from harness.report.junit import xml_text
from harness.report.releases import NewRelease
from harness.report.text import one_line, safe_link

FEED = "regressions.atom"
"""File of the feed."""

_ATOM = "http://www.w3.org/2005/Atom"
_LISTED = 100
_FIRST = "1970-01-01T00:00:00+00:00"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The regressions of one run of an environment, against the run of it before."""

    run: str
    before: str
    environment: str
    started: str
    commit: str
    regressions: tuple[Change, ...]


def entries_of(history: History, *, last: int = 30) -> tuple[Entry, ...]:
    """Runs with regressions, newest first.

    Parameters
    ----------
    history : History
        Whole tables (`harness.analysis.history.read_history` without `columns`).
    last : int
        Runs of each environment to look at.
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
                    Entry(
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
    entries: Sequence[Entry],
    releases: Sequence[NewRelease] = (),
    *,
    title: str = "Regressions of cumatrix",
    address: str = "",
) -> bytes:
    """The content of `FEED`.

    Parameters
    ----------
    entries : sequence of Entry
        Regressions.
    releases : sequence of NewRelease
        New releases; one that cannot be compared has no entry.
    title : str
        Of the feed.
    address : str, optional
        Where the report is published, for links; without it the feed has none.
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


def _entry(entry: Entry, link: str) -> ET.Element:
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
    """Markup of our own, with every word of others escaped."""
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


def _html(entry: Entry) -> Iterable[str]:
    """Markup of our own, with every word of others escaped; the feed's writer escapes all of it once more."""
    yield f"<p>Run {escape(one_line(entry.run))} against {escape(one_line(entry.before))}.</p><ul>"
    for item in entry.regressions[:_LISTED]:
        old = item.old.outcome if item.old else ""
        new, message = (item.new.outcome, item.new.message) if item.new else ("", "")
        said = f": <code>{escape(one_line(message, 200))}</code>" if message else ""
        yield f"<li>{escape(one_line(item.cell))}: {escape(old)} → {escape(new)}{said}</li>"
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
