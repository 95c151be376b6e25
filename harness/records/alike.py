"""Failures that are the same, once, the least expected first: for the terminal and for the annotations of a CI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.diagnostics import one_line, place_of, tells_most
from harness.matrix.kinds import as_expected, kind_of
from harness.matrix.order import ToolchainColumn, fold_targets, target_key, toolchain_key

_LEAST_EXPECTED = ("crashed", "timed_out", "harness_error", "fail", "xpass", "unavailable")

Records = Sequence[Mapping[str, Any]]


def failures(records: Iterable[Mapping[str, Any]]) -> list[Records]:
    """Group unexpected cells by failure.

    Parameters
    ----------
    records : iterable of Mapping
        Records in any order; those that are as expected are passed over.

    Returns
    -------
    list of sequences of Mapping
        The least expected first, then the one with the most cells, then as in the matrix; within a group as in the matrix, in
        and within a group as in the matrix, in any order of completion.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in sorted((record for record in records if not as_expected(record)), key=_in_matrix):
        groups.setdefault(_what(record), []).append(record)
    return sorted(groups.values(), key=lambda group: (_LEAST_EXPECTED.index(kind_of(group[0]).key), -len(group)))


def said_of(record: Mapping[str, Any]) -> tuple[str, str]:
    """The main message, without its architecture, and its place in the source: the reason of a cell without a compiler's answer, else its first diagnostic."""
    diagnostics = record["diagnostics"]
    if record["reason"] or not diagnostics:
        return _without_target(record, record["reason"] or "; ".join(record["notes"])), ""
    first = diagnostics[0]
    line = first.get("line")
    place = f"{first['file']}:{line}" if first.get("file") and line else first.get("file") or ""
    words = tells_most(first["message"], record["log"])
    if not place and words != first["message"] and (found := place_of(record["log"])):
        place = f"{found[0]}:{found[1]}"
    return _without_target(record, words), one_line(place)


def words_of(group: Records) -> str:
    """The main message of a group; with the architecture if there is one cell."""
    words, _ = said_of(group[0])
    return words.replace("_XX", "_" + group[0]["target"].partition("_")[2]) if len(group) == 1 else words


def places_of(group: Records, among: Sequence[str]) -> list[str]:
    """Places of a group's cells: toolchains with their targets, folded like those of `among`, in the order of targets."""
    by_toolchain: dict[ToolchainColumn, set[str]] = {}
    for record in group:
        by_toolchain.setdefault(ToolchainColumn.of(record), set()).add(record["target"])
    by_targets: dict[str, list[ToolchainColumn]] = {}
    for toolchain in sorted(by_toolchain, key=toolchain_key):
        folded = fold_targets(sorted(by_toolchain[toolchain], key=target_key), among)
        by_targets.setdefault(folded, []).append(toolchain)
    return [f"{_toolchains(toolchains)}, {targets}" for targets, toolchains in by_targets.items()]


def _in_matrix(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record["case"], record["variant"], toolchain_key(ToolchainColumn.of(record)), target_key(record["target"])


def _what(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """All that makes one failure another; an architecture in a message does not."""
    if record["status"] == "unavailable":  # whatever needs it, and whatever was expected of that
        return ("unavailable", *said_of(record))
    expected = record["expected"]
    return (
        record["case"], record["status"], record["stage"], record["signal"], *said_of(record),
        *(expected[key] for key in ("status", "stage", "diagnostic")), kind_of(record).key,
    )  # fmt: skip


def _without_target(record: Mapping[str, Any], text: str) -> str:
    number = re.escape(record["target"].partition("_")[2])
    return one_line(re.sub(rf"\b(sm|compute)_{number}\b", r"\1_XX", text), 300)


def _toolchains(toolchains: Sequence[ToolchainColumn]) -> str:
    """``nvrtc, CUDA 12.4, CUDA 13.0``."""
    by_tool: dict[str, list[str]] = {}
    for each in toolchains:
        by_tool.setdefault(each.tool, []).append(each.releases)
    return "; ".join(f"{tool}, {', '.join(releases)}" for tool, releases in by_tool.items())
