"""Conditions mean the same to ``--where`` and to the page's filter: both pass ``tests/report/conditions.json``.

``tests/js/condition.test.js`` tests the page.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.model.condition import Condition, ConditionError, Spelled, Version, Words

SHARED = json.loads((Path(__file__).parents[1] / "report" / "conditions.json").read_text(encoding="utf-8"))
KINDS: dict[str, type] = {"text": str, "flag": bool, "version": Version, "number": float, "words": Words}
NAMES = {name: KINDS[field["kind"]] for name, field in SHARED["names"].items()}
VALUES = {name: field["values"] for name, field in SHARED["names"].items() if "values" in field}
PARAMETERS = {name: [Spelled(value) for value in values] for name, values in SHARED["parameters"].items()}


def read(text: str) -> Condition:
    return Condition.parse(text, PARAMETERS, names=NAMES, values=VALUES)


def fact(name: str, value: Any) -> Any:
    if name in PARAMETERS:
        return Spelled(value)
    kind = NAMES[name]
    return kind(value) if kind in (Version, Words) and value is not None else value


@pytest.mark.parametrize("item", SHARED["kept"], ids=lambda item: item["condition"])
def test_a_condition_keeps_cells(item: dict[str, Any]) -> None:
    holds = read(item["condition"])
    cells = [{name: fact(name, value) for name, value in cell.items()} for cell in SHARED["cells"]]
    assert [place for place, cell in enumerate(cells) if holds(cell)] == item["cells"]


@pytest.mark.parametrize("item", SHARED["refused"], ids=lambda item: item["condition"][:40])
def test_a_condition_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(ConditionError) as refused:
        read(item["condition"])
    assert (str(refused.value), refused.value.position) == (item["error"], item["position"])


@pytest.mark.parametrize("text", SHARED["unreadable"])
def test_a_condition_cannot_be_read(text: str) -> None:
    with pytest.raises(ConditionError, match=r"^cannot read the condition "):
        read(text)
