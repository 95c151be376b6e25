"""The comparable outcome of one release for one cell; and the cell without its release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.diagnostics import one_line, tells_most
from harness.matrix.kinds import kind_of, stopped_at_ptx
from harness.model import Status, Verdict
from harness.records import at_stage

_LONGEST = 160


@dataclass(frozen=True, order=True)
class Lane:
    """A cell without the release that is looked for: the rest of what tells it from others.

    Parameters
    ----------
    variant, backend, library, toolkit, target : str
        As records have them; empty where releases stand.
    """

    variant: str
    backend: str
    library: str
    toolkit: str
    target: str

    @classmethod
    def of(cls, record: Mapping[str, Any], axis: str) -> Lane:
        """The lane of a cell's record.

        Parameters
        ----------
        axis : str
            The part of the cell that holds the release: ``library``, ``toolkit``, or the name of a header library; empty for none of these.
        """
        found = {key: record[key] for key in ("variant", "backend", "library", "toolkit", "target")}
        if axis in found:
            return cls(**{**found, axis: ""})
        if axis:
            text = re.sub(rf" ?--library={re.escape(axis)}=\S+", "", found["variant"])
            found["variant"] = ",".join(label for label in text.split(",") if not label.startswith(f"{axis}="))
        return cls(**found)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The outcome of a release.

    Parameters
    ----------
    status, stage, verdict : str
        As records have them.
    fingerprint : str
        Of the most telling diagnostic; of another reason, its words without numbers.
    words : str
        The message: the first diagnostic, or the reason.
    kind : str
        Kind of the cell (`harness.matrix.kinds`).
    signal : int or None
        What ended the compiler.
    partial : bool
        Whether PTX is all that was made.
    """

    status: str
    stage: str | None
    verdict: str
    fingerprint: str = ""
    words: str = ""
    kind: str = ""
    signal: int | None = None
    partial: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """By what two outcomes are the same. How far something got that was built depends on the library, not on the program."""
        stage = None if self.status == Status.BUILT else self.stage
        return (self.status, stage, self.fingerprint, self.signal, self.partial)

    @property
    def good(self) -> bool | None:
        """Return whether it is as it should be; None for an expected refusal, and for inapplicable cells."""
        if self.verdict in (Verdict.FAIL, Verdict.XFAIL):
            return False
        return True if self.status == Status.BUILT else None

    @property
    def told(self) -> str:
        """``rejected at assemble: uses too much shared data``."""
        if self.status == Status.UNSUPPORTED:
            return f"not applicable ({self.words})"
        return f"{self.brief}: {self.words}" if self.words else self.brief

    @property
    def brief(self) -> str:
        """The same without the message."""
        if self.status == Status.BUILT:
            return "compiled to PTX only" if self.partial else "built"
        if self.status == Status.UNSUPPORTED:
            return "not applicable"
        what = at_stage(self.status.replace("_", " "), self.stage)
        return f"{what} by signal {self.signal}" if self.signal else what


def seen_of(record: Mapping[str, Any]) -> Seen | None:
    """The outcome of a record; None if the release could not be tried: a missing part, or an internal error."""
    status = Status(record["status"])
    if status in (Status.UNAVAILABLE, Status.HARNESS_ERROR):
        return None
    diagnostics = record["diagnostics"] if status is not Status.BUILT else []
    words = tells_most(diagnostics[0]["message"], record.get("log", "")) if diagnostics else record["reason"]
    fingerprint = diagnostics[0].get("fingerprint") or words if diagnostics else re.sub(r"[\d.]+", "N", words)
    return Seen(
        status=status,
        stage=record["stage"],
        verdict=record["verdict"],
        fingerprint=fingerprint,
        words=one_line(words, _LONGEST),
        kind=kind_of(record).key,
        signal=record["signal"],
        partial=status is Status.BUILT and stopped_at_ptx(record),
    )
