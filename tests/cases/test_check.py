"""Output of `cases list` and `cases check`."""

from __future__ import annotations

import json
from pathlib import Path

from harness.cases.library import check, summary_of

from .conftest import GOOD, Load, Write
from .test_load import FULL


def test_a_summary(load: Load) -> None:
    summary = summary_of(load(FULL))
    assert summary.languages == ("cuda", "python")
    assert summary.backends == (
        "nvrtc",
        "cupy-nvrtc",
        "cupy-jitify",
        "numba",
        "numba-cuda",
        "numba-cuda-mlir",
        "nvcc",
        "torch-nvcc",
        "cuda-core",
        "clang",
    )
    assert summary.variants == 4
    assert json.loads(json.dumps(summary.to_json()))["name"] == "topic/some"


def test_nothing_to_say(root: Path, write: Write) -> None:
    write(FULL)
    assert check(root) == []


def test_kernels_that_the_source_does_not_have(root: Path, write: Write) -> None:
    write(GOOD.replace('"scale"', '"skale"'))
    assert check(root) == ['cases/topic/some/case.toml: entry.cuda: "skale" does not occur in kernel.cu']


def test_rules_that_are_never_reached(root: Path, write: Write) -> None:
    write(GOOD + '[[expect]]\nstatus = "built"\n[[expect]]\nwhen = "virtual"\nstatus = "rejected"\n')
    (sentence,) = check(root)
    assert sentence.startswith("cases/topic/some/case.toml:10: expect: is never reached: the rule of line 8")


def test_titles_used_twice_and_broken_cases(root: Path, write: Write) -> None:
    write(GOOD, "topic/a")
    write(GOOD, "topic/b")
    write("title = 1", "topic/c")
    sentences = check(root)
    assert any('title: is the same as that of "topic/a"' in sentence for sentence in sentences)
    assert any("topic/c/case.toml:1: title: must be a text" in sentence for sentence in sentences)
