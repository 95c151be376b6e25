"""Feature sections of a case's page: remedies, the program, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from harness.matrix.links import matrix_link
from harness.records import Record
from harness.report.annotations import remedies
from harness.report.groups import CellGroup

HELPS = 3
"""Known causes that the page of a case names first."""

SNIPPET = 60
"""Lines of a program that is short enough to be read first."""


def helps_of(groups: Sequence[CellGroup]) -> list[Mapping[str, Any]]:
    """Remedies for refusals: known causes, the most severe first, each once."""
    found: dict[str, Mapping[str, Any]] = {}
    for group in groups:
        if group.kind.group in ("not", "fault", "surprise"):
            for item in remedies(cast("Record", group.first)):
                found.setdefault(item["title"], item)
    return list(found.values())[:HELPS]


def snippet_of(sources: Mapping[str, str]) -> str:
    """The program, where it is short: what is tried, in code."""
    programs = [
        text for name, text in sources.items() if name.endswith((".cu", ".cuh", ".py")) and "reference" not in name
    ]
    short = [text for text in programs if text.count("\n") <= SNIPPET and len(text) < SNIPPET * 100]
    return short[0] if short else ""


def proof_link(case: str, backend: str, target: str) -> str:
    """Address of the cells that show something, from the page of a case."""
    return f"../{matrix_link(case=case, backend=backend, target=target)}"
