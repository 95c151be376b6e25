"""``[[launch]]`` and ``[[verify]]``: valid and invalid tables, and their values for a cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cases.launch import launches_for
from harness.model import Case, Cell, Target, Toolchain, ToolkitRef

CASE = """\
title = "A case"

[source]
cuda = "kernel.cu"

[entry]
cuda = ["scale"]

[parameters]
bytes = [64, 128]
[parameters.kind]
half = { TYPE = "half" }
single = { TYPE = "float" }

"""
LAUNCH = """
[[launch]]
when = "bytes == 128"
grid = ["BYTES // 64", 2]
block = "min(BYTES, 32)"
shared = "2 * BYTES"
opt_in = true
arguments = [
    { name = "out", type = "TYPE[]", size = ["BYTES // 4", 2], fill = "random", seed = 7 },
    { type = "int32", value = "BYTES" },
]

[[launch]]
cooperative = true
"""


def cell(case: Case, number: int) -> Cell:
    toolchain = Toolchain(
        backend="nvrtc", library="", toolkit=ToolkitRef(release="13.0", headers="13.0"), environment="e"
    )
    return Cell(case=case, variant=case.variants[number], toolchain=toolchain, target=Target.parse("sm_90"))


def test_the_first_rule_that_applies_counts_for_a_kernel(load: Callable[..., Case]) -> None:
    case = load(CASE + LAUNCH)
    (plain,), (full,) = launches_for(cell(case, 0)), launches_for(cell(case, 2))
    assert (plain.grid, plain.block, plain.shared, plain.cooperative) == ([1, 1, 1], [1, 1, 1], 0, True)
    assert (full.grid, full.block, full.shared, full.opt_in) == ([2, 2, 1], [32, 1, 1], 256, True)
    assert [argument.type for argument in full.arguments] == ["float16", "int32"]
    assert (full.arguments[0].shape, full.arguments[0].seed) == ([32, 2], 7)
    assert full.arguments[1].value == 128


def test_a_reference_and_its_tolerances(load: Callable[..., Case], root: Path) -> None:
    (root / "topic/some").mkdir(parents=True)
    (root / "topic/some/reference.py").write_text("def scale(): pass\n")
    case = load(CASE + '[[launch]]\n\n[[verify]]\nreference = "reference.py"\nrtol = 1e-3\n')
    (launch,) = launches_for(cell(case, 0))
    assert launch.verify is not None
    assert (launch.verify.rtol, launch.verify.atol) == (1e-3, 0.0)
    assert launch.verify.reference == str((root / "topic/some/reference.py").resolve())


def launch(**keys: Any) -> str:
    return "[[launch]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (launch(kernel='"skale"'), "launch.kernel", 'is no entry (did you mean "scale"?)'),
        (launch(grid="[1, 1, 1, 1]"), "launch.grid", "has 4 dimensions; 1 to 3 are possible"),
        (launch(grid="0"), "launch.grid", "not a whole number from 1"),
        (launch(block='"BYTES / 3"'), "launch.block", "not a whole number from 1"),
        (launch(shared='"BITES"'), "launch.shared", "no definition of the case"),
        (launch(shared='"BYTES - 65"'), "launch.shared", "not a whole number from 0"),
        (launch(shared="true"), "launch.shared", "must be a number or an expression"),
        (launch(opt_in='"yes"'), "launch.opt_in", "true or false"),
        (launch(arguments="5"), "launch.arguments", "must be a list of tables, not 5"),
        (launch(arguments="[{ value = 3 }]"), "launch.arguments", "type"),
        (launch(arguments='[{ type = "flout32[]", size = 3 }]'), "launch.arguments.type", "is no type"),
        (launch(arguments='[{ type = "float32[]" }]'), "launch.arguments.size", "is missing: argument 1 is an array"),
        (launch(arguments='[{ type = "float32" }]'), "launch.arguments.value", "is missing: argument 1 is a number"),
        (
            launch(arguments='[{ type = "float32", value = 1, size = 2 }]'),
            "launch.arguments.size",
            "does not belong to a number",
        ),
        (
            launch(arguments='[{ type = "float32[]", size = 2, fill = "noise" }]'),
            "launch.arguments.fill",
            "one of zeros",
        ),
        (launch(arguments='[{ type = "float32[]", size = 2, seed = -1 }]'), "launch.arguments.seed", ""),
        (launch(arguments='[{ tipe = "float32[]" }]'), "launch.arguments.tipe", "unknown key"),
        (launch(grids="3"), "launch.grids", 'unknown key (did you mean "grid"?)'),
        ('[[verify]]\nreference = "missing.py"\n', "verify.reference", ""),
        ('[[verify]]\nreference = "../../secret.py"\n', "verify.reference", ""),
        ('[[verify]]\nreference = "kernel.cu"\n', "verify.reference", "must be a Python file"),
        ('[[verify]]\nreference = "kernel.py"\nrtol = -1\n', "verify.rtol", ""),
        ("[[verify]]\nrtol = 1\n", "verify.reference", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_key(wrong: Callable[..., list[str]], text: str, key: str, words: str) -> None:
    sentences = wrong(CASE + text)
    assert any(f": {key}" in line and words in line for line in sentences), sentences
