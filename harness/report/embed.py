"""Embeddable parts of a feature: its table for an ``<iframe>``, and a badge for each tool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from harness.answers.feature import FeaturePage
from harness.answers.result import ToolFinding
from harness.matrix.axes import natural_key
from harness.matrix.marks import ANSWER_KINDS, BAD, GOOD, GROUPS, KNOWN, NONE, counted_group, grouped, surprises_among
from harness.report.junit import xml_text
from harness.report.text import one_line

_LABEL = "#3c4043"
_NARROW = frozenset("fijlrtI!'()|.,:;[] ")
_WIDE = frozenset("mwMW@%ABCDEFGHKNOQRUVXY&")


def badges(table: pd.DataFrame) -> dict[str, bytes]:
    """Badges by file name: ``cupy13.svg`` for each environment, ``all.svg`` for everything.

    Parameters
    ----------
    table : DataFrame
        With ``environment`` and ``mark`` (`harness.analysis.cells_frame`).
    """
    counts = {
        str(name): part["mark"].value_counts().to_dict() for name, part in table.groupby("environment", sort=False)
    }
    found = {"all.svg": badge("cumatrix", *_say(table["mark"].value_counts().to_dict())).encode()}
    for name in sorted(counts, key=natural_key):
        found[_file(name, found)] = badge(name or "no environment", *_say(counts[name])).encode()
    return found


def badge(label: str, message: str, colour: str) -> str:
    """One badge; label and message may be any text."""
    label, message = (xml_text(one_line(text, 60)) for text in (label, message))
    left, right = (_width(text) + 10 for text in (label, message))
    title = f"{label}: {message}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label={quoteattr(title)}>'
        f"<title>{escape(title)}</title>"
        f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="{_LABEL}"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,Geneva,sans-serif" font-size="11">'
        f'<text x="5" y="14" textLength="{left - 10}">{escape(label)}</text>'
        f'<text x="{left + 5}" y="14" textLength="{right - 10}">{escape(message)}</text></g></svg>\n'
    )


def _say(counts: dict[str, int]) -> tuple[str, str]:
    """Text and color of a badge, from numbers of cells by kind."""
    groups = {**dict.fromkeys(GROUPS, 0), **grouped(counts)}
    bad, lacking, known = surprises_among(counts), groups["unavailable"], groups["fault"]
    meant = sum(counts.values()) - groups["na"] - lacking
    if not meant:
        return GROUPS["unavailable"].word if lacking else "no results", NONE.badge
    if bad:
        return f"{bad:,} of {meant:,} not as expected", BAD.badge
    works = f"{groups['works']:,} of {meant:,} {GROUPS['works'].plural}"
    if known:
        works += f", {known:,} known failure{'s' if known > 1 else ''}"
    if lacking:
        works += f", {counted_group('unavailable', lacking)}"
    if known or lacking:
        return works, KNOWN.badge
    # That nothing works may be as expected; it is nothing to be green for.
    return works, (GOOD if groups["works"] else NONE).badge


def _file(name: str, taken: dict[str, bytes]) -> str:
    """A file name that any file system and URL takes."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "environment"
    number = 1
    while (file := f"{stem}{f'-{number}' if number > 1 else ''}.svg") in taken:
        number += 1
    return file


def _width(text: str) -> int:
    """About as wide as Verdana at 11 pixels; textLength makes it exactly so."""
    return round(
        sum(4.2 if letter in _NARROW else 8.6 if letter in _WIDE or ord(letter) > 0x2E80 else 6.8 for letter in text)
    )


FOLDER = "features"


@dataclass(frozen=True, kw_only=True)
class Embedded:
    """Embeddable parts of a feature, for its page.

    Parameters
    ----------
    stem : str
        Name of its files, without ending.
    badges : tuple of (str, str)
        File below ``badges`` and the tool of each.
    address : str
        The published address of the report, with a slash at its end; by default, the words ``ADDRESS/``.
    """

    stem: str
    badges: tuple[tuple[str, str], ...]
    address: str


def embedded_of(page: str, feature: FeaturePage, address: str) -> Embedded:
    """Names of the files that `files_of` writes for a feature with this page name."""
    stem = page.removesuffix(".html")
    return Embedded(
        stem=stem,
        badges=tuple((f"{stem}--{item.key}.svg", item.tool) for item in summaries_of(feature)),
        address=f"{address.rstrip('/')}/" if address else "ADDRESS/",
    )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The statement about a feature with one tool, over all variants and architectures.

    Parameters
    ----------
    key : str
        The backend, with another library or a host compiler where it has one: ``nvrtc``, ``nvrtc-cutlass``.
    tool, text, colour : str
        The tool as readers call it, the statement in a few words, and the colour of its badge.
    """

    key: str
    tool: str
    text: str
    colour: str


def summaries_of(feature: FeaturePage) -> list[Summary]:
    """The summary of each tool with results."""
    found = []
    for tool, said in _tools(feature).items():
        text, colour = _message(said)
        found.append(Summary(key=f"{_plain(said[0].entry.tool)}{_axis(said[0])}", tool=tool, text=text, colour=colour))
    return found


def _axis(said: ToolFinding) -> str:
    return f"-{_plain(said.entry.axis)}" if said.entry.axis else ""


def _plain(name: str) -> str:
    """A name in letters that mean nothing in addresses, HTML and Markdown."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def badges_of(case: str, feature: FeaturePage, embedded: Embedded) -> Iterator[tuple[str, bytes]]:
    """The badge of each tool."""
    for (name, _), item in zip(embedded.badges, summaries_of(feature), strict=True):
        yield f"badges/{name}", badge(f"{case}, {item.tool}", item.text, item.colour).encode()


def _tools(feature: FeaturePage) -> dict[str, list[ToolFinding]]:
    """Results by tool, over all variants and architectures; only tools with results."""
    found: dict[str, list[ToolFinding]] = {}
    for item in feature.variants:
        for said in item.finding.said:
            if not said.verdict.silent:
                found.setdefault(said.tool, []).append(said)
    return found


def _message(said: Sequence[ToolFinding]) -> tuple[str, str]:
    """Words and colour of a badge: one verdict where there is one, else whether all, some or none works."""
    texts = {item.verdict.text for item in said}
    if len(texts) == 1:
        return said[0].verdict.text, ANSWER_KINDS[said[0].verdict.kind].tone.badge
    if all(item.verdict.works for item in said):
        return "works, not in all versions", GOOD.badge
    if any(item.verdict.works or item.verdict.kind == "part" for item in said):
        return "works in part", KNOWN.badge
    return GROUPS["not"].word, BAD.badge
