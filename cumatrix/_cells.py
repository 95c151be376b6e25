"""One cell with its result, as an object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from harness.diagnostics import clean, one_line
from harness.matrix.kinds import as_expected, kind_of
from harness.records.programs import case_of
from harness.records.spell import failed_at

if TYPE_CHECKING:
    from cumatrix._explain import Explanation


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One thing that a tool said.

    Parameters
    ----------
    severity : str
        ``error``, ``warning``, ``note`` and the like.
    code, message, file, fingerprint : str
        The tool's number of it, its words, the file, and what is the same of equal messages about other places; empty where it is not known.
    line : int or None
        The line in that file, from 1.
    """

    severity: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    fingerprint: str = ""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Resources of a cubin's kernel; None for unknown values.

    Parameters
    ----------
    name : str
        Its symbol.
    registers : int or None
        Registers a thread.
    shared, local, constant, spills : int or None
        Bytes of static shared memory a block; of local memory a thread; of constant memory; spilled a thread.
    """

    name: str
    registers: int | None = None
    shared: int | None = None
    local: int | None = None
    constant: int | None = None
    spills: int | None = None


class Cell:
    """One case, compiled by one backend with one toolkit for one target, and what happened.

    Attributes are the keys of its record (docs/records.md): ``cell.status``, ``cell.stage``, ``cell.verdict``, ``cell.case``,
    ``cell.backend``, ``cell.toolkit``, ``cell.target`` and so on, and what is below.

    Parameters
    ----------
    record : Mapping
        The record.
    """

    __slots__ = ("record",)
    record: Mapping[str, Any]

    def __init__(self, record: Mapping[str, Any]) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "record")[name]
        except KeyError:
            raise AttributeError(f"a cell has no {name!r}; its record has {', '.join(self.record)}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a cell is what happened, and cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell, (dict(self.record),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.record == other.record

    def __hash__(self) -> int:
        return hash((self.id, self.record.get("run")))

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.record})

    @property
    def id(self) -> str:
        """Its readable name, unique in a run."""
        return str(self.record["cell"])

    @property
    def case(self) -> str:
        """Name of its case in the case's own project, which is ``cell.project``."""
        return case_of(self.record)

    @property
    def as_expected(self) -> bool:
        """Return whether the command would exit with 0 if this were the only cell."""
        return as_expected(self.record)

    @property
    def built(self) -> bool:
        """Return whether a compiler finished all requested stages."""
        return bool(self.record["status"] == "built")

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Messages of the tools, the most telling first."""
        return tuple(
            Diagnostic(
                severity=item["severity"], message=item["message"], code=item.get("code") or "", file=item.get("file") or "",
                line=item.get("line"), fingerprint=item.get("fingerprint") or "",
            )
            for item in self.record["diagnostics"]
        )  # fmt: skip

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that were built, with what they use."""
        artifact = self.record["artifact"]
        return tuple(
            Kernel(
                name=item["name"], registers=item.get("num_regs"), shared=item.get("shared_bytes"), local=item.get("local_bytes"),
                constant=item.get("const_bytes"), spills=item.get("spill_bytes"),
            )
            for item in (artifact["kernels"] if artifact else ())
        )  # fmt: skip

    @property
    def message(self) -> str:
        """The main message, on one line; without a compiler, the reason; else empty."""
        found = self.record["diagnostics"]
        return one_line(found[0]["message"] if found else self.record["reason"] or "")

    def explain(self) -> Explanation:
        """The known causes of what happened, and remedies."""
        from cumatrix._explain import explain

        return explain(self)

    def __repr__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"<Cell {one_line(self.id)}: {failed_at(_record(self.record)).replace('_', ' ')} ({self.record['verdict']}){said}>"

    def _repr_html_(self) -> str:
        kind = kind_of(self.record)
        said = "".join(f"<li>{escape(one_line(item.message))}</li>" for item in self.diagnostics[:5])
        log = (
            f"<details><summary>log</summary><pre>{escape(clean(self.record['log']))}</pre></details>"
            if self.record["log"]
            else ""
        )
        return (
            f"<p><b>{escape(one_line(self.id))}</b>: {escape(kind.word)}"
            f"{escape(': ' + one_line(self.record['reason'])) if self.record['reason'] else ''}</p><ul>{said}</ul>{log}"
        )  # fmt: skip


def _record(record: Mapping[str, Any]) -> Any:
    return record
