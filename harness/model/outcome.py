"""The outcome of one cell, as reported by a backend."""

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
    """Status of a cell: a fact, independent of the expectation."""

    BUILT = "built"
    REJECTED = "rejected"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"
    HARNESS_ERROR = "harness_error"

    @property
    def answered(self) -> bool:
        """Return whether a compiler ran to a result. A run without any such cell proves nothing."""
        return self not in (Status.UNSUPPORTED, Status.UNAVAILABLE, Status.HARNESS_ERROR)


def main_message(status: str, message: str, reason: str) -> str:
    """Return the text that explains a status: the reason, or the compiler's first message.

    A crash prefers the message. Any other status prefers the reason.
    """
    return (message or reason) if status == Status.CRASHED else (reason or message)


class Verdict(StrEnum):
    """Status compared with the case's expectation; derived, never stored as a fact."""

    PASS = "pass"
    FAIL = "fail"
    XFAIL = "xfail"
    XPASS = "xpass"
    UNSUPPORTED = "unsupported"
    UNRESOLVED = "unresolved"


# A dictionary lookup is several times as fast as a lookup in an enumeration.
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
        The compiler's number or name of the message; empty without one.
    message : str
        Text on one line.
    file : str
        File that the message names, without the folders above the case; empty without one.
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
    """Resources of one kernel, read from the cubin or the AMD code object. All sizes are in bytes.

    `instructions` counts the kernel's own instructions, without called functions and without padding at the end;
    `opcodes` counts the distinct ones. `tensor_cores` names the tensor core instructions, ``HMMA IMMA``; empty without
    any, None if unknown.
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
    """A compiled file.

    Its format is ``ptx``, ``cubin``, ``object`` (relocatable cubin), ``ltoir`` or ``hsaco`` (AMD code object).
    """

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
        Status.
    stage : Stage or None
        Stage that failed, or the last one that ran.
    stages : tuple of Stage
        Every stage that ran.
    reason : str
        Reason why the cell is unsupported, unavailable or a harness error.
    signal : int or None
        Number of the signal that ended the compiler.
    observed : Mapping
        Versions that the loaded libraries report.
    device : Mapping
        Device that the library used: ``{"virtual": True, "compute_capability": "8.0"}``.
    peak_bytes : int or None
        Peak resident memory of all processes of the cell, in bytes.
    shared_steps : tuple of str
        Tools whose output came from another cell of the run, which depends on the order of cells.
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
        """Return a plain JSON value of every field."""
        # dataclasses.asdict would copy every text, and an unchanged run does little else.
        artifact = self.artifact and {
            **vars(self.artifact), "kernels": [dict(vars(kernel)) for kernel in self.artifact.kernels],
        }  # fmt: skip
        return {
            **vars(self), "diagnostics": [dict(vars(item)) for item in self.diagnostics], "artifact": artifact,
            "observed": dict(self.observed), "device": dict(self.device),
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Outcome:
        """Read the value of `to_json`; raise `KeyError`, `TypeError` or `ValueError` on any other value."""
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
    """Return whether the scalar fields of a class have exactly these types: a bool does not pass as an int."""
    return all(found in _KINDS.get(each.type, (found,)) for each, found in zip(fields(kind), types, strict=True))


def _checked(outcome: Outcome) -> Outcome:
    """Return the outcome; raise `TypeError` if a field has another type."""
    made = outcome.artifact
    parts: tuple[Any, ...] = (outcome, *outcome.diagnostics, *((made, *made.kernels) if made else ()))
    for part in parts:
        if not _are_right(type(part), tuple(map(type, vars(part).values()))):  # type: ignore[arg-type]  # a class is hashable
            raise TypeError(f"a field of {type(part).__name__} has another type")
    "".join((*outcome.command, *outcome.notes, *outcome.shared_steps))  # raises TypeError if an item is not a text
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
        if type(value) is str:  # the most frequent type
            continue
        if isinstance(value, dict | list):
            _check_depth(value.values() if isinstance(value, dict) else value, depth + 1)
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError("a number is not finite")
