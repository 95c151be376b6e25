"""Plain names of variants."""

from __future__ import annotations

from harness.answers.vocabulary import group_label, parameter_labels, variant_label
from harness.cases.discovery import find_cases
from harness.cases.load import load_case
from harness.cases.sources import packaged_cases
from harness.model.case import spell


def values_of_cases() -> dict[tuple[str, str, str], None]:
    root = packaged_cases()
    return {
        (case.name, key, spell(value)): None
        for case in (load_case(path, root) for path in find_cases(root))
        for variant in case.variants
        for key, value in variant.labels.items()
    }


def test_every_label_is_of_a_value_that_a_case_has() -> None:
    assert parameter_labels().keys() - values_of_cases().keys() == set()


def test_every_flag_has_a_label() -> None:
    flags = [each for each in values_of_cases() if each[2] in ("true", "false")]
    assert len(flags) > 50
    assert [each for each in flags if each not in parameter_labels()] == []


def test_values_of_one_parameter_have_different_labels() -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for (case, key, _), label in parameter_labels().items():
        found.setdefault((case, key), []).append(label)
    assert {place: labels for place, labels in found.items() if len(set(labels)) < len(labels)} == {}


def test_a_variant_has_plain_names_and_others_their_values() -> None:
    assert variant_label("wmma/fragments", "arch=given,fragment=tf32") == "architecture named, fragment=tf32"
    assert variant_label("mine/own", "arch=given") == "arch=given"
    checks = ["check=there", "check=left-out", "check=left-out-with-std"]
    assert group_label("host/unsupported-compiler", checks[1:], checks) == (
        "without nvcc's version check or without nvcc's version check but with -std"
    )
    assert group_label("mine/own", ["form=a", "form=b"], ["form=a", "form=b", "form=c"]) == "a or b"
    every = [f"rdc={rdc},size={size}" for rdc in ("true", "false") for size in (1, 2)]
    assert group_label("mine/own", every[:2], every) == "rdc=true, size=1 or 2"
    assert group_label("cooperative/grid-sync", ["rdc=false"], ["rdc=false", "rdc=true"]) == (
        "without relocatable device code"
    )
