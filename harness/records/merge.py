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
    """``rejected at assemble``, or the status alone where there is no stage."""
    return f"{status} at {stage}" if stage else str(status)


def failed_at(record: Record | Other) -> str:
    """Status, and the stage that failed: ``timed_out at compile``; how far something got that was built is left out."""
    return at_stage(record["status"], record["stage"] if record["status"] != "built" else None)


_R = TypeVar("_R", bound=Mapping[str, Any])


def weight(record: Mapping[str, Any]) -> int:
    """2 where a compiler had its say, 1 where the combination is not applicable, 0 where a part was missing or cumatrix failed."""
    return _weight(record["status"])


@cache
def _weight(word: str) -> int:
    status = Status(word)
    if status.answered:
        return 2
    return 1 if status is Status.UNSUPPORTED else 0


def choose(records: Sequence[_R]) -> _R:
    """The record that counts, of those of one cell from the oldest to the newest: the newest of those that say most."""
    most = max(map(weight, records))
    found: _R = next(record for record in reversed(records) if weight(record) == most)
    return found


_Named = TypeVar("_Named", bound=Mapping[str, Any])

DIGITS = 6
"""Length of the digest of a program's place in names."""


def tell_apart(records: Iterable[Record], plans: Iterable[Plan]) -> tuple[list[Record], list[Plan]]:
    """Give cases of one name of several projects, and programs of one name in different folders, names of their own.

    A case is called after its project then, ``fast/softmax@flash-attn``, but for cumatrix's own and those of a project without a name; a program gets its
    digest, ``kernel.cu@3fa9c1``. A unique name stays, or becomes, the plain one, so that it does not matter in which order and in how many
    steps records are merged.
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
    """Name of a record's or planned cell's case as its own project has it."""
    case, mark = str(item["case"]), _mark(item)
    return case.removesuffix(f"@{mark}") if mark else case


def is_of(item: Mapping[str, Any], case: Case) -> bool:
    """Return whether a record, or a planned cell, belongs to a case, and not to another project's of its name; cumatrix's own have no project."""
    return case_of(item) == case.name and item.get("project", "") == case.project


def _mark(item: Mapping[str, Any]) -> str:
    """The part that separates it from others of its name."""
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
    """Identity of a record or a planned cell: the cell's id, and the case's project, or for a program without a case its place."""
    return item["cell"], item.get("program") or item.get("project", "")


AnyRecord = Record | Other
"""A run's result for a cell: its record, or the rest of one that another replaced (`OTHERS`)."""

OTHERS: Final = "others"
"""Key of a record: what other runs told of the cell, where that is something else."""

VIRTUAL = "virtual"
"""Device of a result without one, next to a record of a real one."""


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
        What the others told whose facts differ from it.
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
        One a cell, by cell id. Where other runs told something else, it says so under ``others``.
    plans : tuple of dict
        One a run, oldest first.
    missing : tuple of dict
        Planned cells without a record, as in their plans.
    conflicts : tuple of Conflict
        Cells whose runs give different answers.
    unanswered : tuple of Conflict
        Cells that keep an answer although a later run had none: a part was unavailable, or cumatrix failed.
    inputs : Inputs
        What the records follow from, as far as that is known.
    """

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    missing: tuple[dict[str, Any], ...]
    conflicts: tuple[Conflict, ...]
    unanswered: tuple[Conflict, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)


def agreement_key(record: Record) -> tuple[Any, ...]:
    """The key on which two runs must agree: status, stage, signal and diagnostics (by fingerprint)."""
    diagnostics = {item.get("fingerprint") or item["message"] for item in record["diagnostics"]}
    return (record["status"], record["stage"], record["signal"], tuple(sorted(diagnostics)))


def merge(records: Iterable[Record], plans: Iterable[Plan], inputs: Inputs | None = None) -> Merged:
    """Make one set of records out of several runs.

    Of several records of one cell, that of the run that started last counts; but a record without a compiler's answer never
    replaces one with an answer. Different answers are listed. A run without a plan counts as older than all that have
    one; between runs that started together, the one whose plan comes later.
    """
    records, planned_runs = tell_apart(records, plans)
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
        kept.append(_with_others(best, [other_of(other) for other in others]))
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
    """Other results of a cell, from the oldest run to the newest: other answers, and later runs without one."""
    place = next(number for number, record in enumerate(found) if record is best)
    since = (order[best["run"]], place)
    others: dict[tuple[str, ...], tuple[tuple[int, int], AnyRecord]] = {}
    for number, record in enumerate(found):
        # First those of runs whose records are not here any more.
        # Results of other devices belong to other cells, and are found again wherever both exist (`virtual_against_real`).
        items: list[AnyRecord] = [other for other in record.get(OTHERS, ()) if "device" not in other]
        for item in (*items, record):
            when = (order[item["run"]], number)
            same = (
                agreement_key(record) == agreement_key(best)
                if item is record
                else _agreement_key_of(other_of(item)) == _agreement_key_of(other_of(best))
            )
            # That an earlier run had no answer is of no interest once there is one.
            if not same and (weight(item) or not weight(best) or when > since):
                others[item["run"], *map(str, _agreement_key_of(other_of(item)))] = (when, item)
    return [item for _, item in sorted(others.values(), key=lambda pair: pair[0])]


def spell_other(other: AnyRecord) -> str:
    """``rejected at compile in run 36d5c0941a85: incomplete type is not allowed``, of what another run told."""
    other = other_of(other)
    why, device = other["reason"] or other["diagnostic"], other.get("device", "")
    where = " without a device" if device == VIRTUAL else f" on {device}" if device else ""
    return f"{failed_at(other)}{where} in run {other['run']}" + (f": {why}" if why else "")


def _agreement_key_of(other: Other) -> tuple[Any, ...]:
    return (other["status"], other["stage"], other["diagnostic"])


def other_of(item: AnyRecord) -> Other:
    """The kept part of a record that another replaced."""
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
    """Write the merged records and their plans; on an error, or while a run writes to the file, nothing changes."""
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
    """Plans by start; several of the same run (a file and a merged copy of it) become one."""
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
        """``"NVIDIA H200"``."""
        return str(self.real["device"]["name"])

    @property
    def compiled(self) -> tuple[str, str]:
        """The outcome of the real compiler, without and with a device: ``("built", "rejected at link")``."""
        return until_link(self.virtual), until_link(self.real)

    @property
    def differs(self) -> bool:
        """Return whether the two disagree on the stages that both ran."""
        virtual, real = self.compiled
        return virtual != real

    @property
    def shown_by_device(self) -> bool:
        """Return whether the cell is built and fails on the device, which is the purpose of a device."""
        return not self.differs and self.compiled[1] == "built" and self.real["status"] != "built"

    @property
    def sentence(self) -> str:
        """The pair in words; parts of it come from compilers."""
        virtual, real = self.compiled
        if self.differs:
            return f"{virtual} with the virtual device, {real} on {self.device}"
        if self.shown_by_device:
            return f"built, and {_words(self.real)} on {self.device}"
        return f"{virtual} with the virtual device and on {self.device}"


@dataclass(frozen=True, kw_only=True)
class Honesty:
    """The comparison of both kinds of records.

    Parameters
    ----------
    pairs : tuple of Pair
        Every cell that has an answer of both kinds, by cell and device.
    """

    pairs: tuple[Pair, ...]

    @property
    def differences(self) -> tuple[Pair, ...]:
        """Disagreements of virtual and real, which a page shows first."""
        return tuple(pair for pair in self.pairs if pair.differs)

    @property
    def shown_by_device(self) -> tuple[Pair, ...]:
        """Failures that only the device shows."""
        return tuple(pair for pair in self.pairs if pair.shown_by_device)


def virtual_against_real(records: Iterable[Record]) -> Honesty:
    """Pair the records of real devices with those of the same cells without one.

    The toolkits ``13.0`` and ``13.0@local`` are one here. Cells without an answer on one side (unavailable, an internal error,
    cumatrix) are left out; an unsupported one counts as an answer only against another answer of a compiler. Of several
    records of the same cell the last one counts.
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
    """Records that say of each other what they tell of one place, without a device and on real ones, where that is something else.

    It stands under `OTHERS`, with ``device``: in tables both are one cell, and what is not shown would be lost. Where both were built,
    they tell the same, however far a device got with it.
    """
    if not any(map(_is_real, merged.records)):
        return merged
    places: dict[tuple[str, ...], list[Record]] = {}
    for record in merged.records:
        places.setdefault(_place(record), []).append(record)
    records: list[Record] = []
    for record in merged.records:
        more: list[Other] = [
            {**other_of(other), "device": str(other["device"].get("name", "")) if _is_real(other) else VIRTUAL}
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
    """The outcome of a cell before any device: a cell that fails on one was built."""
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
