"""Answers to a question: the features that it finds, what is known of each, with the cells that prove it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.answers.cells import Entry, Known, Row
from harness.answers.names import LABELS
from harness.answers.question import Chip, Vocabulary
from harness.answers.table import Field, Line, lines_of
from harness.answers.verdict import SILENT, WORKS, Verdict, picked
from harness.answers.words import says, score
from harness.matrix.order import fold_targets, version_key

SHOWN = 5
"""Features that an answer has; the page shows all."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a question asks for, of its chips.

    Parameters
    ----------
    chips : tuple of Chip
        All of them.
    """

    chips: tuple[Chip, ...]

    def _values(self, kind: str) -> list[str]:
        return list(dict.fromkeys(value for chip in self.chips if chip.kind == kind for value in chip.values))

    @cached_property
    def targets(self) -> list[str]:
        """Architectures; none for all."""
        return self._values("target")

    @cached_property
    def toolkits(self) -> list[str] | None:
        """CUDA releases; None for all."""
        return self._values("toolkit") or None

    @cached_property
    def words(self) -> list[str]:
        """Free words, and the names of header libraries."""
        return list(dict.fromkeys(chip.name for chip in self.chips if chip.kind in ("word", "header")))

    @cached_property
    def unknown(self) -> list[Chip]:
        """What nothing is known by that name."""
        return [chip for chip in self.chips if chip.kind == "unknown"]

    def tools(self, vocabulary: Vocabulary) -> dict[str, list[str] | None] | None:
        """Versions by backend, None for all its versions; None where no tool is named."""
        found: dict[str, list[str] | None] = {}
        for chip in self.chips:
            for backend in vocabulary.tools[chip.name] if chip.kind == "tool" else ():
                found[backend] = [*(found.get(backend) or ()), *chip.values] or None
        return found or None

    def headers(self) -> dict[str, list[str]]:
        """Versions by header library; none of them for all."""
        return {chip.name: list(chip.values) for chip in self.chips if chip.kind == "header"}


@dataclass(frozen=True, kw_only=True)
class Said:
    """What is known of a tool.

    Parameters
    ----------
    tool : str
        What readers call it.
    entry : Entry
        The program and the tool.
    targets : tuple of str
        Architectures of which this is true.
    place : str
        The same as a range.
    verdict : Verdict
        Of what was asked.
    overall : str
        Of all versions, where only some were asked for and it is not the same; and where it works else.
    proof : tuple of Row
        The newest cell, and the newest one with another outcome.
    own : str
        What own cells alone say, beside published ones.
    """

    tool: str
    entry: Entry
    targets: tuple[str, ...]
    place: str
    verdict: Verdict
    overall: str
    proof: tuple[Row, ...]
    own: str = ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A feature, with what is known of it."""

    case: str
    title: str
    label: str
    said: tuple[Said, ...]
    faults: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """All that answers a question.

    Parameters
    ----------
    findings : tuple of Finding
        Best first, at most `SHOWN`.
    more : int
        How many there are beside.
    missing : int
        How many of the question's words they lack.
    """

    findings: tuple[Finding, ...]
    more: int
    missing: int = 0

    @property
    def proven(self) -> bool:
        """Whether a cell shows any of it."""
        return any(said.proof for finding in self.findings for said in finding.said)


def answer(asked: Asked, known: Known, vocabulary: Vocabulary) -> Answer:
    """Answer a question.

    Parameters
    ----------
    asked : Asked
        The question.
    known : Known
        What was tried.
    vocabulary : Vocabulary
        `harness.answers.table.vocabulary_of` it.
    """
    targets = [target for target in asked.targets if target in known.targets] or (
        [] if asked.targets else [target for target in known.targets if target.startswith("sm_")]
    )
    lines = {(line.case, line.variants): line for line in lines_of(known, targets)}
    headers = asked.headers()
    of_header = {key: line for key, line in lines.items() if any(field.entry.axis in headers for field in line.fields)}
    # Programs that use the library, not those that speak of it.
    words = [word for word in asked.words if word not in headers] if of_header else asked.words
    lines = of_header or lines
    fields = {key: (*known.words_of(key[0]), line.words) for key, line in lines.items()}
    scores = {key: score(words, found, vocabulary.synonyms) for key, found in fields.items()}
    least = min((missing for missing, _ in scores.values()), default=0)
    chosen = [key for key, (missing, _) in scores.items() if missing == least and (missing < len(words) or not words)]
    chosen = best_variants(chosen, {key: line.words for key, line in lines.items()}, words, vocabulary)
    chosen.sort(key=lambda key: -scores[key][1])
    findings = [finding_of(lines[key], asked, known, asked.tools(vocabulary) or {}) for key in chosen]
    findings = [finding for finding in findings if finding.said]
    findings.sort(key=lambda finding: not any(said.proof for said in finding.said))
    return Answer(findings=tuple(findings[:SHOWN]), more=max(0, len(findings) - SHOWN), missing=least)


Key = tuple[str, tuple[str, ...]]


def best_variants(
    keys: Sequence[Key], own: Mapping[Key, Sequence[str]], words: Sequence[str], vocabulary: Vocabulary
) -> list[Key]:
    """Of each case those variants that have most of the words among their parameters: bf16 is not half."""
    counts = {
        key: sum(any(says(word, each, vocabulary.synonyms) for each in own[key]) for word in words) for key in keys
    }
    most: dict[str, int] = {}
    for key in keys:
        most[key[0]] = max(most.get(key[0], 0), counts[key])
    return [key for key in keys if counts[key] == most[key[0]]]


def finding_of(line: Line, asked: Asked, known: Known, tools: Mapping[str, Sequence[str] | None]) -> Finding:
    """What is known of a line.

    Parameters
    ----------
    line : Line
        The feature, on the architectures that count.
    asked : Asked
        The question: CUDA releases and header libraries in it.
    known : Known
        What was tried.
    tools : Mapping
        Versions by backend, None for all (`Asked.tools`); none of them for every tool.
    """
    headers = asked.headers()
    said: list[Said] = []
    by_tool: dict[tuple[str, str], list[Field]] = {}
    for field in line.fields:
        if not tools or field.entry.backend in tools:
            by_tool.setdefault((field.entry.tool, field.entry.axis), []).append(field)
    for fields in by_tool.values():
        entry = fields[0].entry
        if entry.axis in headers:
            versions: Sequence[str] | None = headers[entry.axis] or None
        else:
            versions = tools.get(entry.backend) if not entry.axis else None
        said += _said(fields, versions, asked.toolkits)
    feature = known.features[line.case]
    return Finding(case=line.case, title=feature.title, label=line.label, said=tuple(said), faults=feature.faults)


def _said(fields: Sequence[Field], versions: Sequence[str] | None, toolkits: Sequence[str] | None) -> list[Said]:
    """Of one tool; architectures with the same verdict together."""
    some = versions is not None or toolkits is not None
    groups: dict[tuple[Verdict, str, str], list[Field]] = {}
    for field in fields:
        verdict = picked(field.grid, versions, toolkits) if some else field.verdict
        overall = (
            f"with other versions: {field.verdict.text}"
            if some and not field.verdict.silent and field.verdict.text not in (verdict.text, "never")
            else ""
        )
        alone = len(fields) == 1
        where = (
            f"works {field.where}" if alone and field.where and field.where != "nowhere" and not verdict.works else ""
        )
        own = field.own.text if field.own else ""
        groups.setdefault((verdict, "; ".join(filter(None, (overall, where))), own), []).append(field)
    every = [field.target for field in fields]
    if any(not verdict.silent for verdict, _, _ in groups):
        groups = {key: group for key, group in groups.items() if not key[0].silent}
    return [
        Said(
            tool=tool_label(group[0].entry),
            entry=group[0].entry,
            targets=tuple(field.target for field in group),
            place=fold_targets([field.target for field in group], every),
            verdict=verdict,
            overall=overall,
            proof=_proof(group[-1], versions, toolkits),
            own=own,
        )
        for (verdict, overall, own), group in groups.items()
    ]


def _proof(field: Field, versions: Sequence[str] | None, toolkits: Sequence[str] | None) -> tuple[Row, ...]:
    rows = [
        row
        for place, row in field.entry.proofs.items()
        if place[2] == field.target
        and row.letter not in SILENT
        and (versions is None or row.version in versions)
        and (toolkits is None or row.toolkit in toolkits)
    ]
    rows.sort(key=lambda row: (version_key(row.version), version_key(row.toolkit)))
    if not rows:
        return ()
    other = [row for row in rows if (row.letter == WORKS) != (rows[-1].letter == WORKS)]
    return (rows[-1], *other[-1:])


def tool_label(entry: Entry) -> str:
    """``CuPy, Jitify``; with the library whose versions count, where it is another: ``NVRTC with cutlass``."""
    backend, _, version = entry.tool.partition(" ")
    label = " ".join(filter(None, (LABELS.get(backend, backend), version)))
    return f"{label} with {entry.axis}" if entry.axis else label


def tried(entry: Entry, target: str) -> str:
    """What was tried: ``12.3.0 to 14.2.0, CUDA 11.8 to 12.9``."""
    rows = [row for place, row in entry.proofs.items() if place[2] == target and row.letter not in SILENT]
    versions = sorted({row.version for row in rows} - {""}, key=version_key)
    toolkits = sorted({row.toolkit for row in rows}, key=version_key)
    return ", ".join(filter(None, (spell_span(versions), f"CUDA {spell_span(toolkits)}" if toolkits else "")))


def spell_span(names: Sequence[str]) -> str:
    """``12.3.0 to 14.2.0``, of versions in order; empty of none."""
    return "" if not names else names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def grouped(values: Mapping[str, str]) -> str:
    """Newest start of a run, as a day; empty where no plan tells."""
    return max(values.values(), default="")[:10]
