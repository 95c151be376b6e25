"""An Atom feed of regressions (RFC 4287), out of a history: the same history gives the same bytes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from uuid import NAMESPACE_URL, uuid5

from harness.analysis.diff import Change, changes
from harness.analysis.history import History
from harness.report.junit import xml_text
from harness.report.text import one_line, safe_link

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


def atom_feed(entries: Sequence[Entry], *, title: str = "Regressions of cumatrix", address: str = "") -> bytes:
    """``regressions.atom``.

    Parameters
    ----------
    entries : sequence of Entry
        Newest first.
    title : str
        Of the feed.
    address : str, optional
        Where the report is published, for links; without it the feed has none.
    """
    ET.register_namespace("", _ATOM)
    root = ET.Element(f"{{{_ATOM}}}feed")
    _text(root, "title", title)
    _text(root, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'cumatrix:{address or title}')}")
    _text(root, "updated", _time(entries[0].started).isoformat() if entries else _FIRST)
    _text(ET.SubElement(root, f"{{{_ATOM}}}author"), "name", "cumatrix")
    link = safe_link(address)
    if link:
        ET.SubElement(root, f"{{{_ATOM}}}link", rel="alternate", href=link)
        ET.SubElement(root, f"{{{_ATOM}}}link", rel="self", href=f"{link.rstrip('/')}/regressions.atom")
    for entry in entries:
        root.append(_entry(entry, link))
    ET.indent(root, " ")
    text: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return text + b"\n"


def _entry(entry: Entry, link: str) -> ET.Element:
    count = len(entry.regressions)
    element = ET.Element(f"{{{_ATOM}}}entry")
    commit = f", commit {entry.commit[:12]}" if entry.commit else ""
    _text(
        element, "title", f"{count} regression{'s' if count > 1 else ''} in {entry.environment or 'cumatrix'}{commit}"
    )
    _text(element, "id", f"urn:uuid:{uuid5(NAMESPACE_URL, f'cumatrix:{entry.before}:{entry.run}:{entry.environment}')}")
    _text(element, "updated", _time(entry.started).isoformat())
    if link:
        ET.SubElement(element, f"{{{_ATOM}}}link", rel="alternate", href=link)
    content = _text(element, "content", "".join(_html(entry)))
    content.set("type", "html")
    return element


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
