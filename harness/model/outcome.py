"""The outcome of one cell, as a backend reports it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any


class Stage(StrEnum):
    """Stages of a cell, in order."""

    PREPROCESS = "preprocess"
    COMPILE = "compile"
    ASSEMBLE = "assemble"
    LINK = "link"
    LOAD = "load"
    LAUNCH = "launch"
    VERIFY = "verify"

    @property
    def rank(self) -> int:
        """Position of the stage in the pipeline, from 0."""
        return list(Stage).index(self)


class Status(StrEnum):
    """Outcome of a cell: a fact, independent of the expectation."""

    BUILT = "built"
    REJECTED = "rejected"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    HARNESS_ERROR = "harness_error"

    @property
    def answered(self) -> bool:
        """Return whether a compiler answered: a run without any answer proves nothing."""
        return self not in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR)


def main_message(status: str, message: str, reason: str) -> str:
    """The text that tells why a cell has its status: the reason, where it has one; of a crash, and without a reason, the compiler's first message."""
    return (message or reason) if status == Status.CRASHED else (reason or message)


class Verdict(StrEnum):
    """Meaning of a status against the case's expectation; derived, never stored as a fact."""

    PASS = "pass"
    FAIL = "fail"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNSUPPORTED = "unsupported"
    UNRESOLVED = "unresolved"


# Looking an enumeration's member up takes several times as long as a table.
_STATUSES = {status.value: status for status in Status}
_STAGES = {stage.value: stage for stage in Stage}


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One message of a compiler.

    Parameters
    ----------
    severity : str
        ``fatal``, ``error``, ``warning``, ``remark`` or ``note``.
    code : str
        The compiler's number or name of it, or empty.
    message : str
        Its text on one line.
    file : str
        The file it names, without the folders above the case, or empty.
    line : int or None
        Line in `file`, from 1.
    fingerprint : str
        Hash of the message without names and numbers that differ from build to build.
    """

    severity: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    fingerprint: str = ""


@dataclass(frozen=True, kw_only=True)
class KernelResources:
    """Resources of one kernel, read back from the cubin or the AMD code object. All sizes are bytes.

    `instructions` counts its own, without the functions that it calls and without what fills up its end; `opcodes` their kinds.
    `tensor_cores` names its instructions for tensor cores, ``HMMA IMMA``; it is empty without any, and None where that is not known.
    """

    name: str
    num_regs: int | None = None
    shared_bytes: int | None = None
    local_bytes: int | None = None
    const_bytes: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    instructions: int | None = None
    opcodes: int | None = None
    tensor_cores: str | None = None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """Artifact formats: ``ptx``, ``cubin``, ``object`` (relocatable cubin), ``ltoir`` or ``hsaco`` (AMD code object)."""

    format: str
    target: str
    bytes: int
    sha256: str
    kernels: tuple[KernelResources, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The facts of one cell.

    Parameters
    ----------
    status : Status
        What happened.
    stage : Stage or None
        How far it got: the stage that failed, or the last one that was exercised.
    stages : tuple of Stage
        Every stage that was exercised; one that is not listed was not run.
    reason : str
        Why the cell is unsupported, unavailable or a harness error.
    signal : int or None
        Number of the signal that ended the compiler.
    observed : Mapping
        Versions asked of what was really loaded.
    device : Mapping
        The device that the library saw: ``{"virtual": True, "compute_capability": "8.0"}``.
    peak_bytes : int or None
        Resident memory that the cell's processes had together at its peak.
    shared_steps : tuple of str
        Tools whose work was taken from another cell of the run, which depends on the order of cells.
    """

    status: Status
    stage: Stage | None = None
    stages: tuple[Stage, ...] = ()
    reason: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    artifact: Artifact | None = None
    signal: int | None = None
    seconds: float = 0.0
    command: tuple[str, ...] = ()
    log: str = ""
    observed: Mapping[str, Any] = field(default_factory=dict)
    device: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    peak_bytes: int | None = None
    shared_steps: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON value of every field."""
        # By hand: an unchanged run does little else, and dataclasses.asdict copies every text.
        artifact = self.artifact and {
            **vars(self.artifact), "kernels": [dict(vars(kernel)) for kernel in self.artifact.kernels],
        }  # fmt: skip
        return {
            **vars(self), "diagnostics": [dict(vars(item)) for item in self.diagnostics], "artifact": artifact,
            "observed": dict(self.observed), "device": dict(self.device),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Outcome:
        """Inverse of `to_json`; raises `KeyError`, `TypeError` or `ValueError` on anything else."""
        return _checked(cls._from_json(value))

    @classmethod
    def _from_json(cls, value: Mapping[str, Any]) -> Outcome:
        fields = dict(value)
        artifact = fields.get("artifact")
        return cls(
            **{
                **fields,
                "status": _STATUSES[fields["status"]],
                "stage": _STAGES[fields["stage"]] if fields.get("stage") else None,
                "stages": tuple([_STAGES[stage] for stage in fields.get("stages", ())]),
                "diagnostics": tuple(Diagnostic(**item) for item in fields.get("diagnostics", ())),
                "artifact": None
                if artifact is None
                else Artifact(**{**artifact, "kernels": tuple(KernelResources(**k) for k in artifact["kernels"])}),
                "command": tuple(fields.get("command", ())),
                "notes": tuple(fields.get("notes", ())),
                "shared_steps": tuple(fields.get("shared_steps", ())),
            }
        )


_KINDS: dict[Any, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "int | None": (int, type(None)),
    "str | None": (str, type(None)),
    "float": (float, int),
}
_DEPTH = 16


@lru_cache(1024)
def _are_right(kind: type[Any], types: tuple[type, ...]) -> bool:
    """Return whether the scalar fields of a class have these types; by the exact type, since a bool is no number here."""
    return all(found in _KINDS.get(each.type, (found,)) for each, found in zip(fields(kind), types, strict=True))


def _checked(outcome: Outcome) -> Outcome:
    """The same outcome; raises `TypeError` where a field has a value of another type."""
    made = outcome.artifact
    parts: tuple[Any, ...] = (outcome, *outcome.diagnostics, *((made, *made.kernels) if made else ()))
    for part in parts:
        if not _are_right(type(part), tuple(map(type, vars(part).values()))):  # type: ignore[arg-type]  # a class is hashable
            raise TypeError(f"a field of {type(part).__name__} has another type")
    "".join((*outcome.command, *outcome.notes, *outcome.shared_steps))  # a TypeError where one of them is no text
    if not math.isfinite(outcome.seconds):
        raise ValueError("seconds is not finite")
    for table in (outcome.observed, outcome.device):
        if not isinstance(table, dict):
            raise TypeError("a table has another type")
        _check_depth(table.values())
    return outcome


def _check_depth(values: Iterable[Any], depth: int = 0) -> None:
    if depth > _DEPTH:
        raise ValueError("a table is nested too deep")
    for value in values:
        if type(value) is str:  # most of them
            continue
        if isinstance(value, dict | list):
            _check_depth(value.values() if isinstance(value, dict) else value, depth + 1)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("a number is not finite")
