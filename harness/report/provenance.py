"""Origin of the records: time, machine, versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from harness.matrix.order import natural_key
from harness.records import Merged
from harness.records.plan import started_at


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run.

    Parameters
    ----------
    name, environment, started, argv : str
        As its plan has them; all but the name empty for a run without a plan.
    machine : dict
        Operating system, Python, processor.
    planned, arrived : int
        Cells that it set out for (None without a plan), and cells of it that are in the report.
    observed : dict
        By name of the thing, the versions that were found loaded.
    """

    name: str
    environment: str
    started: str
    argv: str
    machine: dict[str, str]
    planned: int | None
    arrived: int
    observed: dict[str, list[str]]

    @property
    def when(self) -> str:
        """For readers: when it started, to the second."""
        return f"{started_at({'started': self.started}).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if self.started else ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON value of every field."""
        return {**vars(self)}


def runs_of(merged: Merged) -> list[Run]:
    """Every run that has a plan or a record, oldest first."""
    arrived: dict[str, int] = {}
    observed: dict[str, dict[str, set[str]]] = {}
    seen: set[tuple[str, int]] = set()
    for record in merged.records:
        arrived[record["run"]] = arrived.get(record["run"], 0) + 1
        versions = observed.setdefault(record["run"], {})
        # Records out of Parquet share what they have in common.
        if (record["run"], id(record["toolchain"])) in seen:
            continue
        seen.add((record["run"], id(record["toolchain"])))
        for name, value in record["toolchain"]["observed"].items():
            versions.setdefault(name, set()).add(spell(value))
    plans = {plan["run"]: plan for plan in merged.plans}
    return [
        Run(
            name=name,
            environment=plans[name]["environment"] if name in plans else "",
            started=plans[name]["started"] if name in plans else "",
            argv=" ".join(map(spell, plans[name]["argv"])) if name in plans else "",
            machine={key: spell(value) for key, value in plans[name]["machine"].items()} if name in plans else {},
            planned=len(plans[name]["cells"]) if name in plans else None,
            arrived=arrived.get(name, 0),
            observed={key: sorted(values, key=natural_key) for key, values in sorted(observed.get(name, {}).items())},
        )
        for name in [*plans, *sorted(set(arrived) - set(plans))]
    ]


def spell(value: Any) -> str:
    """A version or another small JSON value as a text."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
