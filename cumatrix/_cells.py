"""One cell with its result, as an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from harness.causes import Match, causes_of, explain_log
from harness.diagnostics import clean, one_line
from harness.errors import UsageError
from harness.matrix.marks import as_expected, kind_of
from harness.records.merge import case_of, failed_at


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


_MAX_BYTES = 32 << 20


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A known cause that was found.

    Parameters
    ----------
    name, title : str
        Its name in the catalogue, and one line.
    cause, remedy : str
        Sentences.
    where : str
        Where it applies, in words; empty for everywhere.
    links : tuple of str
        Upstream's pages.
    said : str
        Its words; empty if the status was enough.
    line : int
        Their line in a log, from 1; 0 elsewhere.
    of_warning : bool
        Whether it explains only a warning.
    """

    name: str
    title: str
    cause: str
    remedy: str
    where: str
    links: tuple[str, ...]
    said: str
    line: int
    of_warning: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a cell or a log.

    Parameters
    ----------
    causes : tuple of Cause
        Those of errors first.
    unexplained : str
        The first error that no cause is known of; of a cell that failed without a known cause, its message. Empty where all is explained, or nothing failed.
    """

    causes: tuple[Cause, ...]
    unexplained: str = ""

    def __bool__(self) -> bool:
        return any(not cause.of_warning for cause in self.causes)

    def __str__(self) -> str:
        lines = [f"no cause is known of: {self.unexplained}"] if self.unexplained else []
        for each in self.causes:
            lines += [
                each.title,
                f"  Cause: {each.cause}",
                f"  Remedy: {each.remedy}",
                *(f"  {link}" for link in each.links),
            ]
        return "\n".join(lines) or "no known cause is in this"

    def _repr_html_(self) -> str:
        parts = [f"<p>No cause is known of: <code>{escape(self.unexplained)}</code></p>"] if self.unexplained else []
        for each in self.causes:
            links = "".join(f"<li>{escape(link)}</li>" for link in each.links)
            said = f"<p><code>{escape(each.said)}</code></p>" if each.said else ""
            parts.append(
                f"<h4>{escape(each.title)}</h4>{said}<p><b>Cause:</b> {escape(each.cause)}</p>"
                f"<p><b>Remedy:</b> {escape(each.remedy)}</p><ul>{links}</ul>"
            )
        return "".join(parts) or "<p>No known cause is in this.</p>"


def explain(what: Cell | Mapping[str, Any] | str | Path) -> Explanation:
    """The known causes of what happened to a cell, or of what a compiler's log says, with remedies.

    Parameters
    ----------
    what : Cell, Mapping, str or Path
        A cell or its record; the text of a log of any compiler; or the file of one, as a `Path`.

    Raises
    ------
    UsageError
        When the file cannot be read.
    """
    if isinstance(what, Path):
        try:
            with what.open("rb") as file:
                what = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"{what}: cannot be read: {error.strerror}") from None
    if isinstance(what, str):
        found = explain_log(what)
        first = found.unexplained
        return Explanation(causes=_causes(found.matches), unexplained=one_line(first.text, 300) if first else "")
    cell = what if isinstance(what, Cell) else Cell(what)
    causes = _causes(causes_of(cell.record))
    known = any(not cause.of_warning for cause in causes)
    failed = cell.record["status"] not in ("built", "unsupported")
    return Explanation(causes=causes, unexplained=cell.message or cell.record["status"] if failed and not known else "")


def _causes(matches: Iterable[Match]) -> tuple[Cause, ...]:
    return tuple(
        Cause(
            name=match.cause.name, title=match.cause.title, cause=match.cause.cause, remedy=match.cause.remedy, where=match.cause.where,
            links=match.cause.links, said=one_line(match.text, 300), line=match.line, of_warning=match.of_warning,
        )
        for match in matches
    )  # fmt: skip
