"""A badge for each environment: SVG for a README, without a service that draws it."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

import pandas as pd

from harness.matrix.kinds import grouped, surprises_among
from harness.matrix.order import natural_key
from harness.report.text import one_line
from harness.report.xml import xml_text

# White on each of these has a contrast of 4.5 and more.
_GOOD, _BAD, KNOWN, NONE = "#2e7d32", "#c62828", "#8a5a00", "#5f6368"
_LABEL = "#3c4043"
_NARROW = frozenset("fijlrtI!'()|.,:;[] ")
_WIDE = frozenset("mwMW@%ABCDEFGHKNOQRUVXY&")


def colour_of(kind: str) -> str:
    """Colour of a verdict (`harness.answers.verdict.Support`)."""
    colours = {
        "works": _GOOD,
        "since": _GOOD,
        "but": _GOOD,
        "part": KNOWN,
        "fault": KNOWN,
        "until": _BAD,
        "never": _BAD,
    }
    return colours.get(kind, NONE)


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
    bad, lacking = surprises_among(counts), grouped(counts).get("unavailable", 0)
    known = counts.get("xfail", 0)
    meant = sum(counts.values()) - counts.get("unsupported", 0) - lacking
    if not meant:
        return "not available" if lacking else "no results", NONE
    if bad:
        return f"{bad:,} of {meant:,} not as expected", _BAD
    works = f"{grouped(counts).get('works', 0):,} of {meant:,} work"
    if known:
        works += f", {known:,} known failure{'s' if known > 1 else ''}"
    if lacking:
        works += f", {lacking:,} not available"
    if known or lacking:
        return works, KNOWN
    # That nothing works may be as expected; it is nothing to be green for.
    return works, _GOOD if grouped(counts).get("works") else NONE


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
