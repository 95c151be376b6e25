"""Results as questions need them: what may be named, which cases a question is about, and the cells of those."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.answers.answer import QueryResult, answer
from harness.answers.asked import Query
from harness.answers.cells import Known, Row
from harness.answers.features import Feature, words_of_feature
from harness.answers.question import Vocabulary
from harness.answers.spelling import words_of
from harness.answers.table import make_vocabulary
from harness.answers.verdict import SILENT
from harness.answers.words import score
from harness.backends import library_of

Use = tuple[str, str, str, str]
"""Backend, version of its library, header library or host compiler, and its version."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """Results that build only the cells of a question: building many thousand cells takes longer than the answer.

    Parameters
    ----------
    features : Mapping[str, Feature]
        By case, in order.
    variants : Mapping[str, sequence of str]
        By case, the parameters of its variants that are no library.
    uses : Mapping[str, set of Use]
        By case, with what it was tried.
    toolkits, targets : sequence of str
        CUDA releases, and targets that a compiler said something of.
    runs : Mapping[str, str]
        When each run started, by its name.
    answered : int
        Cells that a compiler answered.
    rows_of : callable
        Cells of some cases.
    hosts : tuple of str
        Versions of the machines' own host compilers (`harness.answers.cells.Known`).
    said : Mapping[str, frozenset of str]
        By case, words of what compilers said against it.
    """

    features: Mapping[str, Feature]
    variants: Mapping[str, Sequence[str]]
    uses: Mapping[str, frozenset[Use]]
    toolkits: Sequence[str]
    targets: Sequence[str]
    runs: Mapping[str, str]
    answered: int
    rows_of: Callable[[Iterable[str]], list[Row]]
    hosts: tuple[str, ...] = ()
    said: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known) -> Store:
        """Of cells that are all there."""
        variants: dict[str, dict[str, None]] = {}
        uses: dict[str, set[Use]] = {}
        by_case: dict[str, list[Row]] = {}
        for row in known.rows:
            variants.setdefault(row.case, {})[row.rest] = None
            uses.setdefault(row.case, set()).add(use_of(row))
            by_case.setdefault(row.case, []).append(row)
        return cls(
            features=known.features,
            variants={case: tuple(found) for case, found in variants.items()},
            uses={case: frozenset(found) for case, found in uses.items()},
            toolkits=list({row.toolkit: None for row in known.rows}),
            targets=known.targets,
            runs=known.runs,
            answered=sum(row.letter not in SILENT for row in known.rows),
            rows_of=lambda cases: [row for case in cases for row in by_case.get(case, ())],
            hosts=known.hosts,
            said=known.said,
        )

    def known(self, cases: Iterable[str]) -> Known:
        """The cells of some cases."""
        wanted = set(cases)
        features = {case: feature for case, feature in self.features.items() if case in wanted}
        return Known(rows=self.rows_of(features), features=features, runs=self.runs, hosts=self.hosts)

    def bounds(self, asked: Query, vocabulary: Vocabulary) -> dict[str, int]:
        """By case, how many of a question's words none of its variants has; only cases that use the header libraries that are named."""
        headers, hosts = asked.headers(), asked.hosts()
        cases = [case for case in self.features if any(use[2] in headers for use in self.uses.get(case, ()))]
        words = [word for word in asked.words if word not in hosts and not (cases and word in headers)]
        said = self.said if vocabulary.are_said(words) else {}
        found = {}
        for case in cases or self.features:
            own = list(dict.fromkeys(word for rest in self.variants.get(case, ()) for word in words_of(rest)))
            found[case], _ = score(
                words, (*words_of_feature(self.features[case]), own), vocabulary.synonyms, said.get(case, ())
            )
        return found

    def answer(self, asked: Query, vocabulary: Vocabulary) -> QueryResult:
        """Answer a question: `harness.answers.answer.answer`, from the cells of the cases that can be meant."""
        bounds = self.bounds(asked, vocabulary)
        most = min(bounds.values(), default=0)
        while True:
            found = answer(asked, self.known(case for case, missing in bounds.items() if missing <= most), vocabulary)
            # Words that a case has, but no variant of it by itself: then another case may have more of them.
            if found.missing <= most:
                return found
            most = found.missing


def use_of(row: Row) -> Use:
    """With what a cell was tried."""
    backend, library, *_ = (*row.tool.split(" "), "")
    return (backend, library, row.axis, row.version) if row.axis else (backend, row.version, "", "")


def vocabulary_of(*stores: Store) -> Vocabulary:
    """All that questions may name, with the versions and words that results have."""
    features: dict[str, Feature] = {}
    rests: dict[str, None] = {}
    versions: dict[str, set[str]] = {}
    targets: dict[str, None] = {}
    said: set[str] = set()
    for store in stores:
        said.update(*store.said.values())
        features |= store.features
        rests.update(dict.fromkeys(rest for found in store.variants.values() for rest in found))
        targets.update(dict.fromkeys(store.targets))
        # What was paired with the headers of another release is no version that people have.
        versions.setdefault("cuda", set()).update(item for item in store.toolkits if "+headers" not in item)
        for backend, library, header, version in frozenset().union(*store.uses.values()):
            for name, each in ((library_of(backend), library), (header, version)):
                if name and each:
                    versions.setdefault(name, set()).add(each)
    return make_vocabulary(features.values(), rests, versions, targets, said)
