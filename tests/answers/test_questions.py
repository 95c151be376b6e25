"""Questions: the grammar in Python and in the page's script, and the answers."""

from __future__ import annotations

from typing import Any

import pytest

from harness.answers.answer import answer, command_for, known_of_itself, sentence_of
from harness.answers.cells import Known, Row
from harness.answers.query import Query
from harness.answers.question import Vocabulary, parse

from .conftest import EXAMPLES
from .node import said_by_script

QUESTIONS, GRAMMAR = EXAMPLES["question"], EXAMPLES["grammar"]


def spelled(chip: dict[str, Any]) -> str:
    """Return a chip in the form of questions.toml."""
    name = "" if chip["kind"] in ("target", "toolkit") else chip["name"]
    near = f": {' '.join(chip['near'])}".rstrip() if chip["kind"] == "unknown" else ""
    return " ".join(filter(None, (chip["kind"], name, *chip["values"]))) + near


@pytest.mark.parametrize("example", [*QUESTIONS, *GRAMMAR], ids=lambda example: example["asked"])
def test_questions_become_chips(example: dict[str, Any], vocabulary: Vocabulary) -> None:
    chips = [spelled(chip.to_json()) for chip in parse(example["asked"], vocabulary)]
    assert chips == example["chips"]


def test_the_script_reads_questions_as_python_does(vocabulary: Vocabulary) -> None:
    asked = [example["asked"] for example in (*QUESTIONS, *GRAMMAR)]
    program = """{
        const { question } = require("./load.js");
        const { asked, vocabulary } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        console.log(JSON.stringify(asked.map((text) => question.parse(text, vocabulary))));
    }"""
    ours = [[chip.to_json() for chip in parse(text, vocabulary)] for text in asked]
    assert said_by_script(program, {"asked": asked, "vocabulary": vocabulary.to_json()}) == ours


def test_there_are_twenty_questions() -> None:
    assert len({question["asked"] for question in QUESTIONS}) == 20


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["asked"])
def test_questions_are_answered(question: dict[str, Any], known: Known, vocabulary: Vocabulary) -> None:
    asked = Query(chips=tuple(parse(question["asked"], vocabulary)))
    found = answer(asked, known, vocabulary)
    findings = [item for item in found.findings if item.case == question["case"]]
    finding = next(item for item in findings if question.get("label", "") in item.label)
    said = next(item for item in finding.tools if item.tool == question["tool"])
    assert said.verdict.text == question["says"]
    assert question.get("note", "") in f"{said.verdict.note}; {said.overall}"
    assert bool(said.proof) is not question.get("untried", False)
    assert all(row.case == question["case"] for row in said.proof)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("does wgmma work on sm_120", "No. NVRTC: never (0 of 3) (builds on sm_90a; 0 of 7 others)."),
        # sm_90 rejects it, but an H100 also runs sm_90a.
        ("wgmma H100", "Yes. NVRTC, as sm_90a: builds."),
        (
            "wgmma nvrtc",
            "In part. NVRTC: builds on sm_90a, 0 of 25 on sm_60, sm_75, sm_80, sm_89–sm_100, sm_120.",
        ),
        (
            "cached grid sync numba 0.59.0",
            "In part. without a cache: Numba: builds. with cache=True: Numba: does not build, 0 of 1: a known fault (with other versions: builds except 0.59.0).",
        ),
        ("fp8 mma cuda 12.0 hopper", "Not tried."),
    ],
)
def test_an_answer_is_one_sentence(asked: str, sentence: str, known: Known, vocabulary: Vocabulary) -> None:
    query = Query(chips=tuple(parse(asked, vocabulary)))
    assert sentence_of(answer(query, known, vocabulary).findings, query.targets) == sentence


def test_what_nobody_tried_has_a_command(known: Known, vocabulary: Vocabulary) -> None:
    def command(text: str, case: str = "") -> str:
        return command_for(Query(chips=tuple(parse(text, vocabulary))), vocabulary, case)

    assert command("wmma cuda 13.0 ada", "wmma/fragments") == "cumatrix run wmma/fragments -t 13.0 -a sm_89"
    assert command("cutlass 3.5.1 sm_90") == "cumatrix try kernel.cu --library cutlass=3.5.1 -a sm_90"
    assert command("wmma mi300x") == "cumatrix try kernel.py --with triton=all -a gfx942"
    assert command("triton dot") == "cumatrix try kernel.py --with triton=all"
    assert command("cupy 13.1 wmma") == "cumatrix try kernel.cu --with cupy=13.1.0"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("does cuda 13 support V100", []),
        ("RTX 4090 nvrtc 11.7", ["NVRTC: does not build, 0 of 1"]),
        ("5090 cuda 12.4", ["NVRTC: does not build, 0 of 1"]),
        ("GeForce RTX 4090", ["NVRTC: builds since CUDA 11.8"]),
    ],
)
def test_an_architecture_is_a_feature_too(asked: str, says: list[str], known: Known, vocabulary: Vocabulary) -> None:
    found = answer(Query(chips=tuple(parse(asked, vocabulary))), known, vocabulary).findings
    told = [
        f"{said.tool}: {said.verdict.text}" for said in (found[0].tools if found else ()) if not said.verdict.silent
    ]
    assert told[:1] == says
    if says:
        assert found[0].case == ""
    if says == ["NVRTC: does not build, 0 of 1"]:
        assert " knows no sm_" in found[0].tools[0].proof[0].message


def test_that_a_compiler_refuses_an_architecture_is_no_sign_that_it_knows_it() -> None:
    def row(case: str, target: str, letter: str, message: str) -> Row:
        return Row(f"{case} {target}", case, "", "nvrtc", "", "", "12.4", target, letter, message)

    refused = "nvrtc: error: invalid value for --gpu-architecture (-arch)"
    known = known_of_itself(
        Known(
            rows=[
                row("a/b", "sm_120", "n", "CUDA 12.4 knows no sm_120 (ptxas --help)"),
                row("targets/removed", "sm_120", "x", refused),
                row("targets/removed", "sm_90", "w", "built"),
                row("a/b", "sm_90", "x", "no member"),
            ],
            features={},
        )
    )
    assert {row.target: row.letter for row in known.rows} == {"sm_120": "x", "sm_90": "w"}


@pytest.mark.parametrize(
    ("asked", "case"), [("what broke in numba 0.59.0", "cooperative/numba-9432"), ("numba 0.58.1", "")]
)
def test_what_a_version_breaks_comes_first(asked: str, case: str, known: Known, vocabulary: Vocabulary) -> None:
    found = answer(Query(chips=tuple(parse(asked, vocabulary))), known, vocabulary).findings
    assert [item.case for item in found if item.broken] == ([case] if case else [])
    assert not case or found[0].broken


@pytest.mark.parametrize(
    ("asked", "case"),
    [
        ("incomplete type", "wmma/"),
        ("no instance of overloaded function atomicAdd", "atomics/"),
        ("Unresolved extern function cudaCGGetIntrinsicHandle", "cooperative/multi-grid"),
    ],
)
def test_words_of_messages_find_what_is_refused_with_them(
    asked: str, case: str, known: Known, vocabulary: Vocabulary
) -> None:
    chips = tuple(parse(asked, vocabulary))
    assert vocabulary.in_messages(chip.name for chip in chips)
    assert answer(Query(chips=chips), known, vocabulary).findings[0].case.startswith(case)


def test_words_of_features_are_no_message(known: Known, vocabulary: Vocabulary) -> None:
    """Compilers print these words, too."""
    assert not vocabulary.in_messages(["wmma", "fragment", "sync", "atomicadd"])
    assert {"fragment", "atomicadd"} <= frozenset().union(*known.message_words.values())


def test_a_library_that_nobody_tried_is_not_answered_by_another_feature(known: Known, vocabulary: Vocabulary) -> None:
    for asked in ("cccl 2.8 wmma", "gcc-13 nvcc"):
        findings = answer(Query(chips=tuple(parse(asked, vocabulary))), known, vocabulary).findings
        assert not any(said.proof for finding in findings for said in finding.tools), asked


@pytest.mark.parametrize(("asked", "faults"), [("wmma bf16 cupy 12.3.0", True), ("wmma bf16 nvrtc", False)])
def test_known_faults_are_those_of_what_was_asked_for(
    asked: str, faults: bool, known: Known, vocabulary: Vocabulary
) -> None:
    """A fault of one tool is no answer to a question about another."""
    assert known.features["wmma/fragments"].faults
    found = answer(Query(chips=tuple(parse(asked, vocabulary))), known, vocabulary).findings
    assert {bool(item.faults) for item in found if item.case == "wmma/fragments" and item.tools} == {faults}


def test_whether_something_is_needed_has_no_yes(known: Known, vocabulary: Vocabulary) -> None:
    def sentence(text: str, intent: str) -> str:
        query = Query(chips=tuple(parse(text, vocabulary)), intent=intent, decides=intent != "needs")
        return answer(query, known, vocabulary).sentence

    assert sentence("wgmma sm_90a", "feature") == f"Yes. {sentence('wgmma sm_90a', 'needs')}"
    assert (
        sentence("cutlass tiled copy nvcc", "feature") == sentence("cutlass tiled copy nvcc", "needs") == "Not tried."
    )
