"""The known cause of what a compiler said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from cumatrix._cells import Cell
from harness.causes import Match, causes_of, explain_log
from harness.diagnostics import one_line
from harness.errors import UsageError

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
