"""The result of a question: findings for features and tools, and replies that no single feature gives."""

from __future__ import annotations

from dataclasses import dataclass

from harness.answers.cells import Entry, Row
from harness.answers.verdict import Support


@dataclass(frozen=True, kw_only=True)
class ToolFinding:
    """The finding for a tool.

    Parameters
    ----------
    tool : str
        What readers call it.
    entry : Entry
        The program and the tool.
    targets : tuple of str
        Architectures of the finding.
    place : str
        The same as a range.
    verdict : Support
        Of what was asked.
    overall : str
        The verdict over all versions, if only some were requested and it differs; and the architectures that work.
    proof : tuple of Row
        The newest cell, and the newest one with another outcome.
    own : str
        The verdict of own cells alone, in addition to published ones.
    tried : str
        The tried part of the request: ``12.3.0 to 14.2.0, CUDA 11.8 to 12.9``, ``gcc 11 to 14, CUDA 13.0``.
    of_all : bool
        Whether the statement is about all versions, and so names changes.
    """

    tool: str
    entry: Entry
    targets: tuple[str, ...]
    place: str
    verdict: Support
    overall: str
    proof: tuple[Row, ...]
    own: str = ""
    tried: str = ""
    of_all: bool = True


@dataclass(frozen=True, kw_only=True)
class FeatureFinding:
    """A feature, with what is known of it."""

    case: str
    title: str
    label: str
    said: tuple[ToolFinding, ...]
    faults: tuple[tuple[str, str], ...]

    @property
    def broken(self) -> bool:
        """Return whether the requested versions fail where others work."""
        return any(said.overall and said.verdict.refused for said in self.said)


@dataclass(frozen=True, kw_only=True)
class ReplyRow:
    """A line of evidence.

    Parameters
    ----------
    case, title : str
        The case; empty for a line about no case.
    kind : str
        A key of `harness.matrix.marks.ANSWER_KINDS`; empty for a line without a sign.
    text : str
        In a few words: ``new=false: NVRTC on sm_75–sm_120``.
    cells : tuple of str
        Cells that show it: for a change, one before and one after it.
    """

    case: str = ""
    title: str = ""
    kind: str = ""
    text: str
    cells: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The reply to a question that no single feature answers (`harness.answers.replies`).

    Parameters
    ----------
    sentence : str
        The answer.
    rows : tuple of ReplyRow
        The evidence.
    sources : tuple of str
        Pages that facts are from.
    known : bool
        Whether it answers the question; else nothing was tried.
    """

    sentence: str
    rows: tuple[ReplyRow, ...] = ()
    sources: tuple[str, ...] = ()
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class QueryResult:
    """All that answers a question.

    Parameters
    ----------
    sentence : str
        The answer in one sentence; empty where the results have nothing on it.
    findings : tuple of FeatureFinding
        Best first, at most as many as requested.
    more : int
        Number of further ones.
    lacking : tuple of str
        Words of the question that the findings lack: then they are the closest ones, and no answer.
    reply : Reply, optional
        The reply to a question about releases, architectures, limits or messages.
    """

    sentence: str = ""
    findings: tuple[FeatureFinding, ...] = ()
    more: int = 0
    lacking: tuple[str, ...] = ()
    reply: Reply | None = None

    @property
    def proven(self) -> bool:
        """Return whether a cell or a source supports it."""
        if self.reply:
            return self.reply.known
        return not self.lacking and any(said.proof for finding in self.findings for said in finding.said)
