"""``cumatrix.ask``: the command's answers as objects."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command
from record_builders import built, cell, record

import cumatrix

CELLS = Path(__file__).parents[1] / "answers" / "cells.parquet"
QUESTION = "cached grid sync numba 0.59.0"


def test_an_answer_is_what_the_command_says(tmp_path: Path) -> None:
    command = Command(tmp_path)
    answer = cumatrix.ask(QUESTION, CELLS)
    assert answer
    done = command("ask", QUESTION, "--results", CELLS)
    assert [line.rstrip() for line in str(answer).splitlines()] == [line.rstrip() for line in done.stdout.splitlines()]
    said = json.loads(command("ask", QUESTION, "--results", CELLS, "--json").stdout)
    assert [(each.case, each.variants) for each in answer.findings] == [
        (item["case"], item["variants"]) for item in said["findings"]
    ]
    for finding, item in zip(answer.findings, said["findings"], strict=True):
        assert [(each.kind, each.text, list(each.cells)) for each in finding.tools] == [
            (each["kind"], each["answer"], each["cells"]) for each in item["tools"]
        ]


def test_what_nobody_tried_is_no_error_and_has_a_command() -> None:
    answer = cumatrix.ask("wmma half cuda 12.1 Orin", [CELLS])
    assert not answer
    assert answer.commands[-1] == "cumatrix try kernel.cu -t 12.1 -a sm_87"
    assert answer.commands[0] in answer._repr_html_()


def test_results_answer_too() -> None:
    hostile = {**record(cell(target="sm_80"), built("sm_80")), "title": "<script>alert(1)</script> wgmma"}
    answer = cumatrix.ask("wgmma sm_80", cumatrix.Results([hostile]))
    assert [(each.case, [of_tool.kind for of_tool in each.tools]) for each in answer.findings] == [
        ("wmma/fragments", ["works"])
    ]
    assert "<script" not in answer._repr_html_() and "&lt;script" in answer._repr_html_()


def test_what_cannot_be_answered_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(cumatrix.UsageError, match="nothing is known as sm_95"):
        cumatrix.ask("wmma sm_95", CELLS)
    with pytest.raises(cumatrix.NothingToRun, match="no results to answer from"):
        cumatrix.ask("wmma", cumatrix.Results([]))
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    with pytest.raises(cumatrix.RecordError, match=r"bad\.parquet"):
        cumatrix.ask("wmma", tmp_path / "bad.parquet")
