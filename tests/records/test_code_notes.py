"""Notes on the code of built cells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from record_builders import built, cell, record, rejected

from harness.model import Case, Cell, KernelResources, Outcome
from harness.records.failures import remarks
from harness.records.make import code_notes
from harness.records.record_names import chooser


def made(*kernels: KernelResources, target: str = "sm_80") -> Outcome:
    outcome = built(target)
    assert outcome.artifact is not None
    return replace(outcome, artifact=replace(outcome.artifact, kernels=kernels))


def case(*features: str, program: str = "") -> Case:
    return replace(cell().case, features=features, program=program)


def kernel(tensor_cores: str | None = None, **resources: int) -> KernelResources:
    return KernelResources(name="_Z5scalePf", tensor_cores=tensor_cores, **resources)


@pytest.mark.parametrize(
    ("of", "kernels", "notes"),
    [
        (case("tensor-cores"), [kernel("HMMA"), kernel("IMMA HMMA")], ["tensor cores: HMMA, IMMA"]),
        (case("tensor-cores"), [kernel("")], ["no tensor cores"]),
        (case("tensor-cores"), [kernel(""), kernel(None)], []),
        (case("tensor-cores"), [kernel("HMMA"), kernel(None)], ["tensor cores: HMMA"]),
        (case("tensor-cores"), [], []),
        (case(), [kernel("HMMA")], []),
        (case(program="3fa9c1"), [kernel("HMMA")], ["tensor cores: HMMA"]),
        (case(program="3fa9c1"), [kernel("")], []),
        (case(), [kernel(spill_bytes=0, local_bytes=1023)], []),
        (case(), [kernel(spill_bytes=8), kernel(spill_bytes=80)], ["spills 80 bytes of registers (scale)"]),
        (case(), [kernel(local_bytes=1024)], ["local memory: 1024 bytes per thread (scale)"]),
    ],
)
def test_what_is_known_and_matters_is_noted(of: Case, kernels: list[KernelResources], notes: list[str]) -> None:
    assert list(code_notes(of, made(*kernels))) == notes
    assert list(code_notes(of, rejected())) == []


def test_a_record_has_the_notes_after_those_of_the_run() -> None:
    of = cell()
    about = Cell(case=case("tensor-cores"), variant=of.variant, toolchain=of.toolchain, target=of.target)
    made_of = record(about, replace(made(kernel("HMMA")), notes=("a note",)))
    assert made_of["notes"] == ["a note", "tensor cores: HMMA"]


def test_targets_without_tensor_cores_are_named_where_others_have_them() -> None:
    codes = {"sm_75": "", "sm_80": "HMMA", "sm_89": None, "sm_90": "HMMA"}
    records = [
        record(cell(target=target), made(kernel(code, instructions=40, opcodes=9), target=target))
        for target, code in codes.items()
    ]
    assert list(remarks(records).values()) == [["remark: _Z5scalePf uses no tensor cores for sm_75: HMMA for sm_80"]]
    assert remarks(records[:1]) == {}


def test_conditions_choose_by_tensor_cores() -> None:
    codes: list[list[str | None]] = [["HMMA", ""], [""], [None], ["IMMA", None], []]
    records = [record(outcome=made(*(kernel(code) for code in each))) for each in codes]

    def chosen(where: str) -> list[int]:
        holds = chooser(where, records)
        return [place for place, each in enumerate(records) if holds(each)]

    assert chosen('"HMMA" in tensor_cores') == [0]
    assert chosen('tensor_cores == ""') == [1]
    assert chosen('tensor_cores != ""') == [0, 3]
