"""Parsed questions and their results: findings for features and tools, and replies about releases, architectures and limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.answers.cells import Entry, Known, Row
from harness.answers.question import Chip, Vocabulary, narrowest, says, score
from harness.answers.table import FeatureRow
from harness.answers.verdict import Support


@dataclass(frozen=True, kw_only=True)
class Query:
    """A parsed question.

    Parameters
    ----------
    chips : tuple of Chip
        All chips of the question.
    intent : str
        What it wants to know (`harness.answers.vocabulary`).
    decides : bool
        Whether a yes or no leads the answer.
    """

    chips: tuple[Chip, ...]
    intent: str = "feature"
    decides: bool = True

    def _values(self, kind: str) -> list[str]:
        return list(dict.fromkeys(value for chip in self.chips if chip.kind == kind for value in chip.values))

    @cached_property
    def targets(self) -> list[str]:
        """Architectures; an empty list selects all. A named product's architecture replaces its generation's ones."""
        return list(dict.fromkeys(value for chip in narrowest(self.chips) for value in chip.values))

    @cached_property
    def toolkits(self) -> list[str] | None:
        """CUDA releases; None selects all."""
        return self._values("toolkit") or None

    @cached_property
    def words(self) -> list[str]:
        """Free words, and the names of header libraries and host compilers."""
        return list(dict.fromkeys(chip.name for chip in self.chips if chip.kind in ("word", "header", "host")))

    @cached_property
    def unknown(self) -> list[Chip]:
        """Chips for unknown names."""
        return [chip for chip in self.chips if chip.kind == "unknown"]

    def tools(self, vocabulary: Vocabulary) -> dict[str, list[str] | None] | None:
        """Return versions by backend, with None for all versions of a backend.

        Without a named tool, return the backends that use a host compiler if the question names one, else None.
        """
        found: dict[str, list[str] | None] = {}
        for chip in self.chips:
            for backend in vocabulary.tools[chip.name] if chip.kind == "tool" else ():
                found[backend] = [*(found.get(backend) or ()), *chip.values] or None
        return found or (dict.fromkeys(vocabulary.hosted) if self.hosts() else None)

    def headers(self) -> dict[str, list[str]]:
        """Return versions by header library; no versions select all."""
        return self._named("header")

    def hosts(self) -> dict[str, list[str]]:
        """Return versions by host compiler; no versions select all."""
        return self._named("host")

    def _named(self, kind: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for chip in self.chips:
            if chip.kind == kind:
                found.setdefault(chip.name, []).extend(chip.values)
        return found


Key = tuple[str, tuple[str, ...]]
Lines = Mapping[Key, FeatureRow]


def matching(
    lines: Iterable[FeatureRow], query: Query, known: Known, vocabulary: Vocabulary
) -> tuple[list[FeatureRow], tuple[str, ...]]:
    """Return the rows that match a question, best first, and the words that the best row lacks.

    Parameters
    ----------
    lines : iterable of FeatureRow
        All rows.
    query : Query
        The question.
    known : Known
        The tried cells.
    vocabulary : Vocabulary
        The vocabulary of questions.
    """
    every = {(line.case, line.variants): line for line in lines}
    some, words, scores, least = min(
        (_scored(lines, words, known, vocabulary) for lines, words in _readings(every, query, known, vocabulary)),
        key=lambda item: item[3],
    )
    chosen = [key for key, (missing, _) in scores.items() if missing == least and (missing < len(words) or not words)]
    chosen = _best_variants(chosen, {key: line.words for key, line in some.items()}, words, vocabulary)
    chosen.sort(key=lambda key: -scores[key][1])
    lacking = _lacking(chosen[0], some, words, known, vocabulary) if least and chosen else words if least else ()
    return [replace(some[key], weight=scores[key][1]) for key in chosen], tuple(lacking)


def _readings(lines: Lines, query: Query, known: Known, vocabulary: Vocabulary) -> Iterator[tuple[Lines, list[str]]]:
    """Yield rows that may match, with the words to find them by.

    The first reading with the fewest missing words counts. The page's script does the same (`assets/answer.js`).
    """
    headers, hosts, words = query.headers(), query.hosts(), query.words
    if of_header := _with_axis(lines, headers):
        # Select the programs that use the library, not the programs that mention it.
        lines, words = of_header, [word for word in words if word not in headers]
    elif headers:
        # If no program uses the library, select the programs that mention it. No other program answers the question.
        lines = {key: line for key, line in lines.items() if _speaks(line, headers, known, vocabulary)}
    free = [word for word in words if word not in hosts]
    if of_host := _with_axis(lines, hosts):
        yield of_host, free
    yield lines, words
    if free and free != words:
        yield lines, free


def _speaks(line: FeatureRow, names: Iterable[str], known: Known, vocabulary: Vocabulary) -> bool:
    # The causes are ignored: half of them mention CCCL.
    name, title, _ = known.words_of(line.case)
    return not score(list(names), (name, title, (), line.words), vocabulary)[0]


def _with_axis(lines: Lines, names: Collection[str]) -> Lines:
    return {key: line for key, line in lines.items() if any(field.entry.axis in names for field in line.fields)}


def _lacking(key: Key, lines: Lines, words: list[str], known: Known, vocabulary: Vocabulary) -> list[str]:
    fields = (*known.words_of(key[0]), lines[key].words)
    in_messages = known.message_words.get(key[0], ())
    counted = [word for word in words if word not in vocabulary.parts] or words
    return [word for word in counted if score([word], fields, vocabulary, in_messages)[0]]


def _scored(lines: Lines, words: list[str], known: Known, vocabulary: Vocabulary) -> tuple[Lines, list[str], dict[Key, tuple[int, int]], int]:  # fmt: skip
    in_messages = known.message_words if vocabulary.in_messages(words) else {}
    scores = {
        key: score(words, (*known.words_of(key[0]), line.words), vocabulary, in_messages.get(key[0], ()))
        for key, line in lines.items()
    }
    return lines, words, scores, min((missing for missing, _ in scores.values()), default=0)


def _best_variants(
    keys: Sequence[Key], own: Mapping[Key, Sequence[str]], words: Sequence[str], vocabulary: Vocabulary
) -> list[Key]:
    """Return the variants of each case with the most words among their parameters: bf16 is not half."""
    counts = {
        key: sum(any(says(word, each, vocabulary.synonyms) for each in own[key]) for word in words) for key in keys
    }
    most: dict[str, int] = {}
    for key in keys:
        most[key[0]] = max(most.get(key[0], 0), counts[key])
    return [key for key in keys if counts[key] == most[key[0]]]


@dataclass(frozen=True, kw_only=True)
class ToolFinding:
    """The finding for a tool.

    Parameters
    ----------
    tool : str
        The tool's label.
    entry : Entry
        The program and the tool.
    targets : tuple of str
        Architectures of the finding.
    place : str
        The architectures as a range.
    verdict : Support
        The verdict on the requested versions.
    overall : str
        The verdict on all versions, if the question requests only some of them and the verdicts differ, and the
        architectures that work.
    proof : tuple of Row
        The newest cell, and the newest cell with another outcome.
    own : str
        The verdict on own cells alone, in addition to published ones.
    tried : str
        The tried part of the request: ``12.3.0 to 14.2.0, CUDA 11.8 to 12.9``, ``gcc 11 to 14, CUDA 13.0``.
    of_all : bool
        Whether the statement is about all versions and therefore names changes.
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
    """The findings for a feature."""

    case: str
    title: str
    label: str
    tools: tuple[ToolFinding, ...]
    faults: tuple[tuple[str, str], ...]
    weight: int = 0

    @property
    def broken(self) -> bool:
        """Return whether the requested versions fail and other versions work."""
        return any(of_tool.overall and of_tool.verdict.refused for of_tool in self.tools)


@dataclass(frozen=True, kw_only=True)
class ReplyRow:
    """A row of evidence.

    Parameters
    ----------
    case, title : str
        The case; empty for a row without a case.
    kind : str
        A key of `harness.matrix.marks.ANSWER_KINDS`; empty for a row without a sign.
    text : str
        A short text: ``new=false: NVRTC on sm_75–sm_120``.
    cells : tuple of str
        Cells that prove the row: for a change, one before and one after it.
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
        Links to the sources of facts.
    known : bool
        Whether the reply answers the question; False if nothing was tried.
    """

    sentence: str
    rows: tuple[ReplyRow, ...] = ()
    sources: tuple[str, ...] = ()
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class QueryResult:
    """The result of a question.

    Parameters
    ----------
    sentence : str
        The answer in one sentence; empty if the results contain no answer.
    findings : tuple of FeatureFinding
        The findings, best first, up to the requested number.
    more : int
        The number of further findings.
    lacking : tuple of str
        Words of the question that the findings lack. With such words, the findings are the closest ones and do not
        answer the question.
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
        """Return whether a cell or a source proves the answer."""
        if self.reply:
            return self.reply.known
        return not self.lacking and any(of_tool.proof for finding in self.findings for of_tool in finding.tools)
