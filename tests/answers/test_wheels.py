"""Questions about packages and GPUs: Python and the page's script share a grammar, and the wheels decide the answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wheels_builders import PACKAGES

from harness.answers import vocabulary as words
from harness.answers.question import Vocabulary
from harness.answers.vocabulary import read
from harness.answers.wheels import WheelReplies, names_of

from .node import said_by_script

RUNS = {
    "does vllm run on 5090": ["runs vllm 120"],
    "vllm on an H100?": ["runs vllm 90"],
    "does vllm run on an MI250": ["runs vllm gfx90a"],
    "vllm 0.1.0 h100": ["runs vllm@0.1.0 90"],
    "vllm==0.1.0 sm_90": ["runs vllm@0.1.0 90"],
    "since which release does vllm run on sm_120": ["runs vllm 120"],
    "which gpus does vllm run on": ["runs vllm"],
    "does cupy run on thor": ["runs cupy 110"],
    "does cupy-cuda12x run on a V100": ["runs cupy 70"],
    "flash-attn b200": ["runs flash-attn 100"],
    "vllm blackwell": [f"runs vllm {cc}" for cc in (100, 120, 103, 121)],
    "vllm and flash-attn on sm_80": ["runs vllm 80", "runs flash-attn 80"],
}
OTHERS = (
    "cupy sm_90",  # targets that CuPy compiles for
    "does vllm build on sm_120",
    "vllm fp8 on sm_89",  # targets that are not in the wheel
    "vllm with cuda 12.4 on sm_90",
    "does wgmma work on sm_120",
    "vllm99 h100",
)


def test_a_package_and_a_gpu_are_a_question_of_its_own(vocabulary: Vocabulary) -> None:
    known = replace(vocabulary, packages=names_of(PACKAGES))
    ours = {text: read(text, known, {}) for text in (*RUNS, *OTHERS)}
    assert {text: list(ours[text].keys) for text in RUNS} == RUNS
    assert not [text for text in OTHERS if ours[text].intent.name == "runs"]
    program = """{
        const { question, intents } = require("./load.js");
        const { asked, ...data } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        const read = (text) => intents.read(text, question.parse(text, data.vocabulary), data);
        console.log(JSON.stringify(asked.map(read)));
    }"""
    told = said_by_script(
        program, {"asked": list(ours), "vocabulary": known.to_json(), "intents": words.to_json(), "releases": {}}
    )
    for text, theirs in zip(ours, told, strict=True):
        mine = ours[text]
        chips = [chip.to_json() for chip in mine.chips]
        assert theirs == {
            "intent": mine.intent.name,
            "decides": mine.intent.decides,
            "chips": chips,
            "keys": list(mine.keys),
        }, text


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("vllm 120", "In part: vllm 0.2.0 has native code for sm_120 in 1 of its 2 libraries. Since 0.2.0: 0.1.0 has none."),
        ("vllm@0.1.0 120", "No: vllm 0.1.0 has no code for sm_120."),
        ("vllm 90", "Yes: vllm 0.2.0 has native code for sm_90 in each of its 2 libraries. So has each release that was read, from 0.1.0 on."),
        ("vllm@0.3.0 90", "Not known: vllm 0.3.0 is not among the releases that were read: 0.1.0, 0.2.0."),
        ("cupy 90", "Yes: cupy-cuda12x 14.0.0 has PTX alone for sm_90 in its library. PTX is compiled from the driver of CUDA 12.8 (570.26) on. No: cupy-cuda13x 14.0.0 has no code for sm_90."),
        ("flash-attn 90", "Not known: the index has flash-attn 9.0 as source alone. The build decides."),
        ("triton 90", "The wheel of triton 3.0 has no device code. What a package compiles or downloads on your machine is not in its wheel."),
        ("vllm", "vllm 0.2.0 has native code for sm_90; code in part for sm_80, sm_86, sm_89, sm_120, sm_121; not known for sm_87; none for sm_61, sm_70, sm_75, sm_100, sm_103, sm_110 (2 libraries)."),
    ],
)  # fmt: skip
def test_replies_follow_from_the_code(key: str, sentence: str) -> None:
    reply = WheelReplies(PACKAGES).of(f"runs {key}")
    assert reply is not None
    assert reply.sentence == sentence
    assert reply.known is not sentence.startswith("Not known")
