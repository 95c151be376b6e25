"""Merging of runs: one record per cell, conflicts, missing cells, and virtual against real devices."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from harness.matrix.axes import place_of
from harness.model import Case, Stage, Status
from harness.records.files import left_alone, replace_files
from harness.records.plan import Inputs, Plan, inputs_path, plan_path, plans_json, started_at
from harness.records.record import Other, Record


def at_stage(status: str, stage: str | None) -> str:
    """Return ``rejected at assemble``, or the status alone without a stage."""
    return f"{status} at {stage}" if stage else str(status)


def failed_at(record: Record | Other) -> str:
    """Return the status and the stage that failed: ``timed_out at compile``. The stage of a built cell is omitted."""
    return at_stage(record["status"], record["stage"] if record["status"] != "built" else None)


_R = TypeVar("_R", bound=Mapping[str, Any])


def weight(record: Mapping[str, Any]) -> int:
    """Return 2 for a compiler's answer, 1 for an inapplicable combination, 0 if a part was unavailable or cumatrix failed."""
    return _weight(record["status"])


@cache
def _weight(word: str) -> int:
    status = Status(word)
    if status.answered:
        return 2
    return 1 if status is Status.UNSUPPORTED else 0


def choose(records: Sequence[_R]) -> _R:
    """Return the record that counts, from the records of one cell, oldest first: the newest of those with the greatest weight."""
    most = max(map(weight, records))
    found: _R = next(record for record in reversed(records) if weight(record) == most)
    return found


_Named = TypeVar("_Named", bound=Mapping[str, Any])

DIGITS = 6
"""Length of the digest of a program's path in names."""


def disambiguate(records: Iterable[Record], plans: Iterable[Plan]) -> tuple[list[Record], list[Plan]]:
    """Give unique names to cases of several projects with one name, and to programs of one name in different folders.

    The name of such a case includes its project: ``fast/softmax@flash-attn``. Cumatrix's own cases and the cases of a
    project without a name keep theirs. The name of such a program includes its digest: ``kernel.cu@3fa9c1``. A unique
    name stays or becomes the plain one. The result therefore does not depend on the order and the number of the merges.
    """
    records, plans = list(records), list(plans)
    owners: dict[str, set[str]] = {}
    for item in (*records, *(cell for plan in plans for cell in plan["cells"])):
        owners.setdefault(case_of(item), set()).add(_mark(item))
    shared = {name for name, several in owners.items() if len(several) > 1}
    return (
        [_named(record, shared) for record in records],
        [{**plan, "cells": [_named(cell, shared) for cell in plan["cells"]]} for plan in plans],
    )


def case_of(item: Mapping[str, Any]) -> str:
    """Return the name of a record's or planned cell's case in its own project."""
    case, mark = str(item["case"]), _mark(item)
    return case.removesuffix(f"@{mark}") if mark else case


def is_of(item: Mapping[str, Any], case: Case) -> bool:
    """Return whether a record or a planned cell belongs to a case, and not to a case of the same name in another project.

    Cumatrix's own cases have no project.
    """
    return case_of(item) == case.name and item.get("project", "") == case.project


def _mark(item: Mapping[str, Any]) -> str:
    """Return the part of the name that separates items of one name."""
    return str(item["program"])[:DIGITS] if item.get("program") else str(item.get("project") or "")


def _named(item: _Named, shared: set[str]) -> _Named:
    mark = _mark(item)
    if not mark:
        return item
    plain = case_of(item)
    name = f"{plain}@{mark}" if plain in shared else plain
    if name == item["case"]:
        return item
    renamed: Any = {**item, "case": name, "cell": name + item["cell"].removeprefix(item["case"])}
    return cast("_Named", renamed)


def identity(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return the identity of a record or a planned cell: the cell's id and the case's project, or the path of a program without a case."""
    return item["cell"], item.get("program") or item.get("project", "")


AnyRecord = Record | Other
"""A run's result for a cell: its record, or the kept part of a replaced record (`OTHERS`)."""

OTHERS: Final = "others"
"""Key of a record: the different results of other runs for the cell."""

VIRTUAL = "virtual"
"""Device of a result from no real device, next to a record from a real one."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """One cell with different results in two runs.

    Parameters
    ----------
    cell : str
        Id of the cell.
    kept : dict
        The record that counts.
    dropped : tuple of dict
        The other results with different facts.
    """

    cell: str
    kept: Record
    dropped: tuple[AnyRecord, ...]

    def __str__(self) -> str:
        others = ", ".join(f"{record['status']} in run {record['run']}" for record in self.dropped)
        return f"{self.cell}: {self.kept['status']} in run {self.kept['run']} counts; {others}"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """One set of records.

    Parameters
    ----------
    records : tuple of dict
        One record per cell, by cell id. ``others`` contains different results of other runs.
    plans : tuple of dict
        One plan per run, oldest first.
    missing : tuple of dict
        Planned cells without a record, as in their plans.
    conflicts : tuple of Conflict
        Cells with different answers in several runs.
    unanswered : tuple of Conflict
        Cells that keep an answer although a later run had none: a part was unavailable, or cumatrix failed.
    inputs : Inputs
        The known inputs of the records.
    """

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    missing: tuple[dict[str, Any], ...]
    conflicts: tuple[Conflict, ...]
    unanswered: tuple[Conflict, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)


def agreement_key(record: Record) -> tuple[Any, ...]:
    """Return the key on which two runs must agree: status, stage, signal and diagnostics (by fingerprint)."""
    diagnostics = {item.get("fingerprint") or item["message"] for item in record["diagnostics"]}
    return (record["status"], record["stage"], record["signal"], tuple(sorted(diagnostics)))


def merge(records: Iterable[Record], plans: Iterable[Plan], inputs: Inputs | None = None) -> Merged:
    """Merge several runs into one set of records.

    If several runs have a cell, the record of the run that started last counts. However, a record without a compiler's
    answer never replaces one with an answer. Different answers are listed. A run without a plan counts as older than
    all runs with a plan. If two runs started at the same time, the one with the later plan counts.
    """
    records, planned_runs = disambiguate(records, plans)
    runs = _one_a_run(planned_runs)
    order = Counter({plan["run"]: place for place, plan in enumerate(runs, 1)})
    by_cell: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: order[record["run"]]):
        by_cell.setdefault(record["cell"], []).append(record)

    kept: list[Record] = []
    conflicts, unanswered = [], []
    for cell, found in sorted(by_cell.items()):
        if len(found) == 1 and OTHERS not in found[0]:
            kept.append(found[0])
            continue
        best = choose(found)
        others = _others(found, best, order)
        differ = tuple(other for other in others if weight(other) or not weight(best))
        silent = tuple(other for other in others if other not in differ)
        kept.append(_with_others(best, [other_result(other) for other in others]))
        if differ:
            conflicts.append(Conflict(cell=cell, kept=kept[-1], dropped=differ))
        if silent:
            unanswered.append(Conflict(cell=cell, kept=kept[-1], dropped=silent))
    planned = {cell["cell"]: cell for plan in runs for cell in plan["cells"]}
    return Merged(
        records=tuple(kept),
        plans=tuple(runs),
        missing=tuple(planned[cell] for cell in sorted(planned) if cell not in by_cell),
        conflicts=tuple(conflicts),
        unanswered=tuple(unanswered),
        inputs=(inputs or Inputs()).of({record["fingerprint"] for record in kept}),
    )


def _with_others(record: Record, others: list[Other]) -> Record:
    if others:
        return {**record, OTHERS: others}
    if OTHERS in record:
        record = record.copy()
        del record[OTHERS]
    return record


def _others(found: Sequence[Record], best: Record, order: Counter[str]) -> list[AnyRecord]:
    """Return the other results of a cell, from the oldest run to the newest: other answers, and later runs without one."""
    place = next(number for number, record in enumerate(found) if record is best)
    since = (order[best["run"]], place)
    others: dict[tuple[str, ...], tuple[tuple[int, int], AnyRecord]] = {}
    for number, record in enumerate(found):
        # First come the results of runs whose records are gone.
        # Results of other devices belong to other cells. `virtual_against_real` finds them again if both exist.
        items: list[AnyRecord] = [other for other in record.get(OTHERS, ()) if "device" not in other]
        for item in (*items, record):
            when = (order[item["run"]], number)
            same = (
                agreement_key(record) == agreement_key(best)
                if item is record
                else _agreement_key_of(other_result(item)) == _agreement_key_of(other_result(best))
            )
            # Once there is an answer, an earlier run without one does not matter.
            if not same and (weight(item) or not weight(best) or when > since):
                others[item["run"], *map(str, _agreement_key_of(other_result(item)))] = (when, item)
    return [item for _, item in sorted(others.values(), key=lambda pair: pair[0])]


def spell_other_result(other: AnyRecord) -> str:
    """Return another run's result in words: ``rejected at compile in run 36d5c0941a85: incomplete type is not allowed``."""
    other = other_result(other)
    why, device = other["reason"] or other["diagnostic"], other.get("device", "")
    where = " without a device" if device == VIRTUAL else f" on {device}" if device else ""
    return f"{failed_at(other)}{where} in run {other['run']}" + (f": {why}" if why else "")


def _agreement_key_of(other: Other) -> tuple[Any, ...]:
    return (other["status"], other["stage"], other["diagnostic"])


def other_result(item: AnyRecord) -> Other:
    """Return the part of a record that is kept when another record replaces it."""
    if "diagnostics" not in item:
        return item
    return {
        "run": item["run"],
        "status": item["status"],
        "stage": item["stage"],
        "reason": item["reason"],
        "diagnostic": item["diagnostics"][0]["message"] if item["diagnostics"] else "",
    }


def write_merged(merged: Merged, path: Path) -> None:
    """Write the merged records and their plans. On an error, or while a run writes to the file, nothing changes."""
    lines = [
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        for record in merged.records
    ]
    with left_alone(path):
        known = merged.inputs.of({record["fingerprint"] for record in merged.records})
        inputs = {inputs_path(path): known.to_json()} if known else {}
        replace_files({path: b"".join(lines), plan_path(path): plans_json(merged.plans), **inputs})
        if not known:
            inputs_path(path).unlink(missing_ok=True)


def _one_a_run(plans: Iterable[Plan]) -> list[Plan]:
    """Return plans by start. Several plans of one run, as in a file and its merged copy, become one."""
    runs: dict[str, Plan] = {}
    for plan in plans:
        known = runs.setdefault(plan["run"], plan)
        if known["cells"] != plan["cells"]:
            cells = {cell["cell"]: cell for cell in (*known["cells"], *plan["cells"])}
            runs[plan["run"]] = {**known, "cells": list(cells.values())}
    return sorted(runs.values(), key=started_at)


_ANSWERS = {status.value for status in (Status.BUILT, Status.REJECTED, Status.CRASHED, Status.TIMED_OUT)}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One cell, compiled without a device and run on a real one.

    Parameters
    ----------
    cell : str
        Id of the cell without a device.
    virtual, real : Record
        The two records.
    """

    cell: str
    virtual: Record
    real: Record

    @property
    def device(self) -> str:
        """The name of the device: ``"NVIDIA H200"``."""
        return str(self.real["device"]["name"])

    @property
    def compiled(self) -> tuple[str, str]:
        """The outcome of the real compiler, without and with a device: ``("built", "rejected at link")``."""
        return until_link(self.virtual), until_link(self.real)

    @property
    def differs(self) -> bool:
        """Return whether the two records disagree on the stages that both ran."""
        virtual, real = self.compiled
        return virtual != real

    @property
    def shown_by_device(self) -> bool:
        """Return whether the cell is built and fails on the device. Devices exist to show this."""
        return not self.differs and self.compiled[1] == "built" and self.real["status"] != "built"

    @property
    def sentence(self) -> str:
        """The pair in words, with parts from compilers."""
        virtual, real = self.compiled
        if self.differs:
            return f"{virtual} with the virtual device, {real} on {self.device}"
        if self.shown_by_device:
            return f"built, and {_words(self.real)} on {self.device}"
        return f"{virtual} with the virtual device and on {self.device}"


@dataclass(frozen=True, kw_only=True)
class Honesty:
    """The comparison of records with and without a real device.

    Parameters
    ----------
    pairs : tuple of Pair
        Every cell with both kinds of answers, by cell and device.
    """

    pairs: tuple[Pair, ...]

    @property
    def differences(self) -> tuple[Pair, ...]:
        """Disagreements between virtual and real devices, which a page shows first."""
        return tuple(pair for pair in self.pairs if pair.differs)

    @property
    def shown_by_device(self) -> tuple[Pair, ...]:
        """Failures that only the device shows."""
        return tuple(pair for pair in self.pairs if pair.shown_by_device)


def virtual_against_real(records: Iterable[Record]) -> Honesty:
    """Pair the records of real devices with the records of the same cells without a device.

    The toolkits ``13.0`` and ``13.0@local`` count as equal. Cells without an answer on one side (unavailable, or an
    internal error of cumatrix) are skipped. An unsupported cell counts as an answer only next to a compiler's answer.
    The last of several records of one cell counts.
    """
    records = list(records)
    if not any(map(_is_real, records)):
        return Honesty(pairs=())
    virtual: dict[tuple[str, ...], Record] = {}
    real: dict[tuple[str, ...], Record] = {}
    for record in records:
        if _is_real(record):
            real[(*_key(record), str(record["device"].get("name")))] = record
        else:
            virtual[_key(record)] = record
    pairs = [
        Pair(cell=virtual[key[:-1]]["cell"], virtual=virtual[key[:-1]], real=record)
        for key, record in sorted(real.items())
        if key[:-1] in virtual and _comparable(virtual[key[:-1]], record)
    ]
    return Honesty(pairs=tuple(pairs))


def tell_devices(merged: Merged) -> Merged:
    """Add to each record the different results of its place from real devices and from no device.

    The results are under `OTHERS`, with ``device``. In tables, the results are one cell, and a hidden one would be
    lost. Built cells agree, independent of the stages that a device reached.
    """
    if not any(map(_is_real, merged.records)):
        return merged
    places: dict[tuple[str, ...], list[Record]] = {}
    for record in merged.records:
        places.setdefault(_place(record), []).append(record)
    records: list[Record] = []
    for record in merged.records:
        more: list[Other] = [
            {**other_result(other), "device": str(other["device"].get("name", "")) if _is_real(other) else VIRTUAL}
            for other in places[_place(record)]
            if _facts(other) != _facts(record)
        ]
        records.append({**record, OTHERS: [*record.get(OTHERS, ()), *more]} if more else record)
    return replace(merged, records=tuple(records))


def _place(record: Record) -> tuple[str, ...]:
    return place_of(record)


def _facts(record: Record) -> tuple[Any, ...]:
    return ("built",) if record["status"] == Status.BUILT else agreement_key(record)


def _is_real(record: Record) -> bool:
    return record["device"].get("virtual") is False


def until_link(record: Record) -> str:
    """Return the outcome of a cell before any device. A cell that fails on a device was built."""
    stage = Stage(record["stage"]) if record["stage"] else None
    if record["status"] in _ANSWERS and stage and stage.rank >= Stage.LOAD.rank:
        return "built"
    return _words(record)


def _words(record: Record) -> str:
    return failed_at(record).replace("_", " ")


def _comparable(virtual: Record, real: Record) -> bool:
    statuses = {virtual["status"], real["status"]}
    return bool(statuses & _ANSWERS) and statuses <= {*_ANSWERS, Status.UNSUPPORTED.value}


def _key(record: Record) -> tuple[str, ...]:
    return place_of({**record, "toolkit": record["toolkit"].replace("@local", "")})
