"""What is not as expected, in the terminal: equal failures once, the least expected first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.causes import causes_of
from harness.cli.grid import named
from harness.diagnostics import one_line, place_of, tells_most
from harness.matrix.kinds import kind_of
from harness.matrix.order import ToolchainColumn, fold_targets, target_key, toolchain_key
from harness.records import again_command, at_stage

_MOST_GROUPS = 20
_MOST_PLACES = 4
_LEAST_EXPECTED = ("crashed", "timed_out", "harness_error", "fail", "xpass", "unavailable")

Records = Sequence[Mapping[str, Any]]


def show_failures(console: Console, strange: Records, among: Iterable[str]) -> None:
    """Print every failure once, with the cells that have it, the line that tells most, its place, known cause and remedy.

    Parameters
    ----------
    console : Console
        Where.
    strange : sequence of Mapping
        The records that are not as expected.
    among : iterable of str
        The targets of all records.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    # Cells end in another order each time; what is told of them does not depend on it.
    for record in sorted(strange, key=_in_matrix):
        groups.setdefault(_what(record), []).append(record)
    ordered = sorted(groups.values(), key=lambda group: (_LEAST_EXPECTED.index(kind_of(group[0]).key), -len(group)))
    targets = sorted(among, key=target_key)
    for group in ordered[:_MOST_GROUPS]:
        _show(console, group, targets)
    if len(ordered) > _MOST_GROUPS:
        cells = sum(map(len, ordered[_MOST_GROUPS:]))
        console.print(f"… and {len(ordered) - _MOST_GROUPS} more failures, of {cells} cells", markup=False)


def _in_matrix(record: Mapping[str, Any]) -> tuple[Any, ...]:
    return record["case"], record["variant"], toolchain_key(ToolchainColumn.of(record)), target_key(record["target"])


def _what(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """All that makes one failure another; an architecture in a message does not."""
    if record["status"] == "unavailable":  # whatever needs it, and whatever was expected of that
        return ("unavailable", *_said(record))
    expected = record["expected"]
    return (
        record["case"], record["status"], record["stage"], record["signal"], *_said(record),
        *(expected[key] for key in ("status", "stage", "diagnostic")), kind_of(record).key,
    )  # fmt: skip


def _said(record: Mapping[str, Any]) -> tuple[str, str]:
    """What tells most, and where in the source: the reason of a cell without a compiler's answer, else its first diagnostic."""
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


def _without_target(record: Mapping[str, Any], text: str) -> str:
    number = re.escape(record["target"].partition("_")[2])
    return one_line(re.sub(rf"\b(sm|compute)_{number}\b", r"\1_XX", text), 300)


def _show(console: Console, group: Records, axis: Sequence[str]) -> None:
    first = group[0]
    count = f" {_times(console)}{len(group)}" if len(group) > 1 else ""
    console.print(Text.assemble(named(console, kind_of(first)), f"{count}: ", _cells(group, axis)), soft_wrap=True)
    words, place = _said(first)
    if len(group) == 1:
        words = words.replace("_XX", "_" + first["target"].partition("_")[2])
    console.print(Text(f"    {_against(first)}{words}"), soft_wrap=True)
    if place:
        console.print(Text(f"    at {place}", "dim"), soft_wrap=True)
    if again := again_command(first):
        console.print(Text(f"    again: {one_line(again, 400)}", "dim"), soft_wrap=True)
    if cause := next((match.cause for match in causes_of(first) if not match.of_warning), None):
        console.print(Text.assemble("    ", ("cause: ", "bold"), cause.title), soft_wrap=True)
        console.print(Text.assemble("    ", ("remedy: ", "bold green"), cause.remedy), soft_wrap=True)


def _times(console: Console) -> str:
    try:
        "×".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return "x"
    return "×"


def _cells(group: Records, axis: Sequence[str]) -> str:
    """The cell's id, or the program, and where it fails: toolchains with their targets folded."""
    if len(group) == 1:
        return one_line(group[0]["cell"])
    programs = list(dict.fromkeys(record["case"] for record in group))
    variants = list(dict.fromkeys(record["variant"] for record in group))
    variant = f"[{variants[0]}]" if len(variants) == 1 and variants[0] else ""
    more = f" ({len(variants)} variants)" if len(variants) > 1 else ""
    if len(programs) > 1:
        variant, more = "", f" and {len(programs) - 1} more program{'s' if len(programs) > 2 else ''}"
    by_toolchain: dict[ToolchainColumn, set[str]] = {}
    for record in group:
        by_toolchain.setdefault(ToolchainColumn.of(record), set()).add(record["target"])
    by_targets: dict[str, list[ToolchainColumn]] = {}
    for toolchain in sorted(by_toolchain, key=toolchain_key):
        folded = fold_targets(sorted(by_toolchain[toolchain], key=target_key), axis)
        by_targets.setdefault(folded, []).append(toolchain)
    places = [f"{_toolchains(toolchains)}, {targets}" for targets, toolchains in by_targets.items()]
    rest = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    return one_line(f"{programs[0]}{variant}{more}: {'; '.join(places[:_MOST_PLACES])}{rest}", 500)


def _toolchains(toolchains: Sequence[ToolchainColumn]) -> str:
    """``nvrtc, CUDA 12.4, CUDA 13.0``."""
    by_tool: dict[str, list[str]] = {}
    for each in toolchains:
        by_tool.setdefault(each.tool, []).append(each.releases)
    return "; ".join(f"{tool}, {', '.join(releases)}" for tool, releases in by_tool.items())


def _against(record: Mapping[str, Any]) -> str:
    if record["status"] == "unavailable":
        return ""
    wanted = record["expected"]
    expected = at_stage(wanted["status"], wanted["stage"])
    if wanted["diagnostic"]:
        expected += f" with /{wanted['diagnostic']}/"
    return one_line(f"{at_stage(record['status'], record['stage'])}, expected {expected}: ", 300) + " "
