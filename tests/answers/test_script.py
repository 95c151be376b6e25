"""The page's script answers as `cumatrix ask` does."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from harness.answers.answer import command_for, finding_of, known_of_itself
from harness.answers.cells import Known
from harness.answers.query import Query, matching
from harness.answers.question import Vocabulary, parse
from harness.answers.replies import reply_to_message
from harness.answers.store import Store, known_of, vocabulary_of
from harness.answers.table import lines_of
from harness.causes.catalogue import catalogue
from harness.report.answer_data import answers_data, answers_for, causes_data, columns_of

from .conftest import CELLS, EXAMPLES
from .node import said_by_script
from .test_hosts import RECORDS

ON = "sm_80"

PROGRAM = """{
    const { question, answering, requests } = require("./load.js");
    const { data, part, asked, target } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
    question.addNames(data);
    const told = asked.map((text) => {
        const chips = question.parse(text, data.vocabulary);
        const of = requests.read(chips, data.vocabulary);
        const found = answering.find(data, part, of).map(({ line, fields }) => [
            data.features[line[0]].case, line[1],
            Object.fromEntries([...fields].map(([column, verdict]) => [data.columns[column][1], verdict.text])),
        ]);
        return [found, requests.command(of, chips, data.vocabulary, target, "")];
    });
    console.log(JSON.stringify(told));
}"""


def by_script(known: Known, asked: list[str]) -> list[list[Any]]:
    data = answers_data(known, dict.fromkeys(known.features, "x.html"))
    part = answers_for(known, ON, known_of_itself(known))
    found: list[list[Any]] = said_by_script(PROGRAM, {"data": data, "part": part, "asked": asked, "target": ON})
    return found


def by_python(known: Known, vocabulary: Vocabulary, text: str) -> list[Any]:
    asked = Query(chips=tuple(parse(text, vocabulary)))
    lines, _ = matching(lines_of(known, [ON]), asked, known, vocabulary)
    findings = [finding_of(line, asked, known, asked.tools(vocabulary) or {}) for line in lines]
    findings.sort(key=lambda each: all(said.verdict.silent for said in each.tools))
    findings.sort(key=lambda each: bool(asked.words) or not each.broken)
    shown = {label for _, label in columns_of(known)}
    found = [[each.case, each.label, {said.tool: said.verdict.text for said in each.tools if said.tool in shown}] for each in findings]  # fmt: skip
    command = command_for(
        Query(chips=(*asked.chips, *(parse(ON, vocabulary) if not asked.targets else ()))), vocabulary
    )
    return [[each for each in found if each[2]], command.rpartition(" -a ")[0]]


@pytest.mark.parametrize("results", ["compiled", "hosts"])
def test_the_script_answers_as_python_does(results: str, known: Known) -> None:
    if results == "compiled":
        asked = [question["asked"] for question in EXAMPLES["question"]]
        asked += [
            "incomplete type",
            "no instance of overloaded function sm_75",
            "uses too much shared data",
            "numba 0.59.0",
            "cutlass 3.5.1 nvrtc 13.0",
            "nvrtc cutlass",
            "gcc 12 wmma",
            "gcc-13 nvcc 13.0",
            "fp8 cupy 13.6 13.0",
        ]
    else:
        known = known_of(RECORDS)
        asked = ["gcc-12 intrinsics", "g++ 11", "clang-19 nvcc 13.0", "gcc-14 intrinsics", "fragments gcc 12.2", "fragments gcc 13", "glibc 2.42"]  # fmt: skip
    vocabulary = vocabulary_of(Store.of(known))
    for text, (found, command) in zip(asked, by_script(known, asked), strict=True):
        assert [found, command.rpartition(" -a ")[0]] == by_python(known, vocabulary, text), text


def test_the_script_names_the_causes_that_explain_names() -> None:
    """For messages from the catalogue's examples, both find the same first cause, or none if the message alone is not enough."""
    examples = [example for cause in catalogue().values() for example in cause.examples]
    program = """{
        const { intents } = require("./load.js");
        const { causes, asked } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(asked.map((text) => intents.cause(text, causes)?.sentence ?? "")));
    }"""
    said = said_by_script(program, {"causes": causes_data(), "asked": examples})
    ours = [reply.sentence if (reply := reply_to_message(text, [])) else "" for text in examples]
    others = [
        (text, theirs, own)
        for text, theirs, own in zip(examples, said, ours, strict=True)
        if theirs not in ("", own) and (own or "arning" not in text)
    ]
    assert others == []
    # Words that rule out a cause count on the page, too.
    contradicted = 'a.cu(1): error: identifier "N" is undefined\na.cu(2): error: too few arguments in function call'
    assert said_by_script(program, {"causes": causes_data(), "asked": [contradicted]}) == [""]
    assert sum(map(bool, said)) > 0.8 * len(examples)  # 340 of 390 on the day of writing


def test_the_data_of_the_page_is_the_same_in_every_process() -> None:
    code = (
        "import json, pathlib\n"
        "from harness.answers.store import read_known\n"
        "from harness.report.answer_data import answers_data, causes_data\n"
        f"known = read_known([pathlib.Path({str(CELLS)!r})])\n"
        "print(json.dumps([answers_data(known, dict.fromkeys(known.features, 'x')), causes_data()]))\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1
