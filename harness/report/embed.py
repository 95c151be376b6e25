"""Embeddable parts of a feature: its table for an ``<iframe>``, a badge for each tool, and its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.answers.answer import ToolFinding
from harness.answers.as_json import said_json
from harness.answers.feature import FeaturePage
from harness.report.badges import KNOWN, badge, colour_of
from harness.report.text import clean

FOLDER = "features"
SCHEMA = 1
"""Version of the JSON of a feature."""


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
    tools = _tools(feature)
    names = {tool: f"{stem}--{_plain(said[0].entry.tool)}" for tool, said in tools.items()}
    names = {tool: f"{name}{_axis(tools[tool][0])}.svg" for tool, name in names.items()}
    return Embedded(
        stem=stem,
        badges=tuple((name, tool) for tool, name in names.items()),
        address=f"{address.rstrip('/')}/" if address else "ADDRESS/",
    )


def _axis(said: ToolFinding) -> str:
    return f"-{_plain(said.entry.axis)}" if said.entry.axis else ""


def _plain(name: str) -> str:
    """A name in letters that mean nothing in addresses, HTML and Markdown."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def badges_of(case: str, feature: FeaturePage, embedded: Embedded) -> Iterator[tuple[str, bytes]]:
    """The badge of each tool: what is known of the feature with it."""
    tools = _tools(feature)
    for name, tool in embedded.badges:
        message, colour = _message(tools[tool])
        yield f"badges/{name}", badge(f"{case}, {tool}", message, colour).encode()


def feature_json(case: str, title: str, feature: FeaturePage, faults: Sequence[tuple[str, str]]) -> bytes:
    """All that is known of a feature, as JSON."""
    value = {
        "schema": SCHEMA,
        "case": case,
        "title": title,
        "variants": [
            {
                "label": item.finding.label,
                "said": [{"tool": said.tool, **said_json(said)} for said in item.finding.said],
                "versions": [
                    {
                        "tool": row.tool,
                        "versions": row.versions,
                        "cuda": {
                            release: {"kind": kind, "where": where}
                            for release, (kind, where) in zip(feature.toolkits, row.cells, strict=True)
                            if kind
                        },
                    }
                    for row in item.rows
                ],
            }
            for item in feature.variants
        ],
        "untried": list(feature.untried),
        "faults": [{"reason": reason, "link": link} for reason, link in faults],
    }
    return (clean(json.dumps(value, indent=1, ensure_ascii=True)) + "\n").encode()


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
        return said[0].verdict.text, colour_of(said[0].verdict.kind)
    if all(item.verdict.works for item in said):
        return "works, not in all versions", colour_of("works")
    if any(item.verdict.works or item.verdict.kind == "part" for item in said):
        return "works in part", KNOWN
    return "does not work", colour_of("never")
