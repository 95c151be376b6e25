"""Comparison of the virtual device with a real one, over the same cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from harness.matrix.axes import place_of
from harness.model import Stage, Status
from harness.records.merge import OTHERS, VIRTUAL, Merged, agreement_key, failed_at, other_of
from harness.records.record import Other, Record

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
            if other is not record and _facts(other) != _facts(record)
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
