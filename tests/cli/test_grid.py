"""The matrix in a terminal: every cell in its place, in any width, and without control sequences from names."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from harness.cli.summary import show_matrix, show_summary
from harness.matrix.marks import kind_of

TARGETS = ["sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "sm_120", "compute_90"]
STATES = [("built", "pass"), ("rejected", "pass"), ("rejected", "fail"), ("rejected", "xfail"), ("unsupported", "unsupported"),
          ("crashed", "fail"), ("built", "xpass")]  # fmt: skip


def made(
    target: str, status: str, verdict: str, *, case: str = "wmma/fragments", toolkit: str = "12.4", **more: Any
) -> dict[str, Any]:
    return {
        "cell": f"{case} nvrtc cuda{toolkit} {target}", "case": case, "variant": "", "backend": "nvrtc", "library": "", "toolkit": toolkit,
        "target": target, "status": status, "verdict": verdict, "stage": "compile", "stages": [], "artifact": None, "diagnostics": [], "reason": "", "cached": False, "signal": None, "notes": [],
        "expected": {"status": "built", "stage": None, "diagnostic": None}, **more,
    }  # fmt: skip


RECORDS = [
    made(target, *state, toolkit=toolkit)
    for toolkit in ("12.10", "12.4")
    for target, state in zip(TARGETS, STATES, strict=True)
]


def shown(
    records: list[dict[str, Any]], width: int, *, terminal: bool = False, show: Any = show_matrix, **more: Any
) -> str:
    stream = io.StringIO()
    show(
        Console(
            file=stream,
            width=width,
            highlight=False,
            force_terminal=terminal,
            color_system="standard" if terminal else None,
        ),
        records,
        **more,
    )
    return stream.getvalue()


@pytest.mark.parametrize("width", [20, 30, 44, 60, 80, 200])
def test_every_cell_stands_under_its_target(width: int) -> None:
    found: dict[tuple[str, str], str] = {}
    columns: list[tuple[int, str]] = []
    for line in shown(RECORDS, width).splitlines():
        assert len(line) <= width
        if re.fullmatch(r" {8,}[c\da-f ]+", line):
            columns = [(match.end(), match[0]) for match in re.finditer(r"\S+", line)]
        elif line.startswith("  nvrtc"):
            for end, target in columns:
                letter = line[:end].split(" ")[-1]
                release = re.search(r"12\.\d*|…", line)
                assert release is not None
                found[release[0], target] = letter
    if width >= 44:  # narrower tables cut off the toolkit
        expected = {
            (record["toolkit"], record["target"].replace("sm_", "").replace("compute_", "c")): kind_of(record).letter
            for record in RECORDS
        }
        assert found == expected


def test_versions_are_in_order() -> None:
    lines = [line for line in shown(RECORDS, 200).splitlines() if line.startswith("  nvrtc")]
    assert ["12.4 " in line for line in lines] == [True, False]


def test_colours_only_in_a_terminal() -> None:
    assert "\x1b[" not in shown(RECORDS, 80)
    assert "\x1b[1;31mF" in shown(RECORDS, 80, terminal=True)


def test_letters_tell_as_much_as_colours() -> None:
    text = shown(RECORDS, 80)
    for status, verdict in STATES:
        kind = kind_of(made("sm_80", status, verdict))
        assert f"{kind.letter} {kind.word}" in " ".join(text.split())


def test_hostile_names_and_messages() -> None:
    name = "\x1b]0;owned\x07\x1b[2Jcase\u202e[bold red]"
    record = made(
        "sm_80",
        "rejected",
        "fail",
        case=name,
        diagnostics=[{"severity": "error", "message": "\x1b[31mno\x1b[0m [link=x]y[/link]"}],
        log="",
    )
    for text in (shown([record], 80), shown([record], 80, show=show_summary, planned=1, table=True)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold red]" in text
    assert "no [link=x]y[/link]" in shown([record], 80, show=show_summary, planned=1, table=True)


def test_a_stream_without_the_letters_gets_plain_ones() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", errors="strict")
    show_matrix(Console(file=stream, width=80, highlight=False), RECORDS)
    stream.flush()
    text = raw.getvalue().decode("ascii")
    assert "B built" in text
    assert "- not applicable" in text
