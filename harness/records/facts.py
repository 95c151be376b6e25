"""Facts of a record: what conditions see of it, which is what they see of its cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model import Target
from harness.model.facts import facts_of


def record_facts(record: Mapping[str, Any]) -> dict[str, Any]:
    """As `harness.model.Cell.facts` of the record's cell, without the parameters of its case, which records have as text only."""
    requested = record["toolchain"]["requested"]
    name, _, headers = record["toolkit"].partition("+headers")
    release = name.removesuffix("@local")
    return facts_of(
        backend=record["backend"],
        library=record["library"],
        release=release,
        headers=headers or release,
        target=Target.parse(record["target"]),
        # By what was asked for: a cell that never reached its device has no description of it.
        device=f" {record['target']} on " in record["cell"],
        packages=requested.get("packages", {}),
        libraries=requested.get("libraries", {}),
    )
