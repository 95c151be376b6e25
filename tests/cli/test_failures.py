"""Unexpected outcomes in the terminal."""

from __future__ import annotations

import io
from typing import Any

from record_builders import built, cell, record, rejected
from rich.console import Console

from harness.cli.summary import show_failures
from harness.matrix.marks import as_expected
from harness.model import Outcome, Status
from harness.records import Record

SHARED = "Entry function 'k' uses too much shared data (0xc004 bytes, 0xc000 max)"


def shown(records: list[Record], encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict")
    strange = [record for record in records if not as_expected(record)]
    targets = {record["target"] for record in records}
    show_failures(Console(file=stream, width=400, highlight=False), strange, targets)
    stream.flush()
    return raw.getvalue().decode(encoding)


def nvrtc(target: str = "sm_80", toolkit: str = "12.4", **more: Any) -> Any:
    return cell(backend="nvrtc", library="", target=target, toolkit=toolkit, **more)


def test_equal_failures_are_told_once_with_where_they_are() -> None:
    records = [
        record(nvrtc(target, toolkit), rejected(f'"{target}" is undefined'))
        for toolkit in ("12.4", "13.0")
        for target in ("sm_80", "sm_90")
    ]
    records.append(record(nvrtc("sm_75"), built("sm_75")))
    assert shown(records) == (
        "F not as expected ×4: wmma/fragments: nvrtc, CUDA 12.4, CUDA 13.0, sm_80, sm_90\n"
        '    rejected at compile, expected built: "sm_XX" is undefined\n'
        "    at kernel.cu:12\n"
        "    again: cumatrix run wmma/fragments -b nvrtc -t 12.4 -a sm_80\n"
    )
    # In any order of the cells.
    assert shown(records[::-1]) == shown(records)


def test_other_words_and_other_programs_are_other_failures() -> None:
    records = [
        record(nvrtc(), rejected("one")),
        record(nvrtc("sm_90"), rejected("two")),
        record(nvrtc("sm_90", case="wmma/other"), rejected("two")),
    ]
    text = shown(records)
    assert text.count("not as expected: ") == 3
    assert "wmma/fragments nvrtc cuda12.4 sm_80" in text  # the command for a single cell has its id


def test_what_is_not_installed_is_told_once_whatever_needs_it() -> None:
    absent = Outcome(status=Status.UNAVAILABLE, reason="CUDA 12.4 is not installed: run it")
    records = [record(nvrtc(case=f"wmma/{name}"), absent) for name in ("a", "b", "c")]
    assert shown(records).startswith(
        "U not available ×3: wmma/a and 2 more programs: nvrtc, CUDA 12.4, sm_80\n    CUDA 12.4 is not installed: run it\n"
    )


def test_the_least_expected_comes_first() -> None:
    died = Outcome(status=Status.CRASHED, signal=11, reason="the compiler's process was ended by signal 11")
    absent = Outcome(status=Status.UNAVAILABLE, reason="CUDA 12.4 is not installed")
    records = [
        record(nvrtc("sm_50"), absent),
        record(nvrtc("sm_80"), rejected("two")),
        record(nvrtc("sm_90"), rejected("two")),
        record(nvrtc("sm_75"), rejected("one")),
        record(nvrtc("sm_100"), died),
    ]
    lines = [line for line in shown(records).splitlines() if not line.startswith(" ")]
    assert [line.split(":")[0] for line in lines] == [
        "C crashed",
        "F not as expected ×2",
        "F not as expected",
        "U not available",
    ]


def test_a_known_cause_is_told_with_its_remedy_and_that_of_a_warning_is_not() -> None:
    text = shown([record(nvrtc(), rejected(SHARED, log=f"ptxas error   : {SHARED}\n"))])
    assert "cause: More static shared memory than a block can have\n" in text
    assert "remedy: Make the array dynamic" in text
    assert "cause:" not in shown([record(nvrtc(), rejected("nobody knows this"))])


def test_as_expected_is_nothing_to_show() -> None:
    assert shown([record(nvrtc(), built())]) == ""


def test_many_failures_are_counted() -> None:
    records = [record(nvrtc(case=f"t/c{number}"), rejected()) for number in range(25)]
    assert shown(records).endswith("… and 5 more failures, of 5 cells\n")


def test_hostile_words_and_a_stream_of_ascii() -> None:
    records = [record(nvrtc(target), rejected("\x1b[31mno\u202e [bold]x")) for target in ("sm_80", "sm_90")]
    text = shown(records)
    assert "\x1b" not in text and "\u202e" not in text and "[bold]x" in text
    plain = [record(nvrtc(target), rejected("no")) for target in ("sm_80", "sm_90")]
    assert shown(plain, "ascii").startswith("F not as expected x2: ")
