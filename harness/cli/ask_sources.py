"""What ``cumatrix ask`` answers from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.answers.packed import read_packed
from harness.answers.store import Store
from harness.errors import NothingToRun, UsageError
from harness.published.place import ANSWERS, published_folder, read_manifest, stale_cases

OWN = Path("reports")
"""Where runs put the records of whoever asks."""


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Results that a question is put to.

    Parameters
    ----------
    name : str
        ``published``, ``own``, or ``results`` for those that were named.
    title : str
        What readers call them.
    store : Store
        The results.
    made_of : Mapping[str, str]
        Digest by case, of what is published.
    """

    name: str
    title: str
    store: Store
    made_of: Mapping[str, str] = field(default_factory=dict)

    def stale(self, case: str) -> bool:
        """Whether its cells are of another version of the case than the one that is here."""
        return bool(stale_cases({case: self.made_of[case]})) if case in self.made_of else False

    @cached_property
    def newest(self) -> str:
        """Day of its newest run; empty where no plan tells."""
        return max(self.store.runs.values(), default="")[:10]


def sources_of(results: tuple[Path, ...]) -> list[AnswerSource]:
    """Results that were named; else the published matrix, and whoever asks' own.

    Raises
    ------
    RecordError
        When some cannot be read.
    NothingToRun
        When there are none in those that were named.
    UsageError
        When there are none at all.
    """
    if results:
        from harness.answers.read import read_known

        store = Store.of(read_known(results))
        if not store.features:
            raise NothingToRun("there are no results to answer from")
        return [AnswerSource(name="results", title=", ".join(map(str, results)), store=store)]
    found = []
    folder = published_folder()
    if folder is not None:
        found.append(
            AnswerSource(
                name="published",
                title="the published matrix",
                store=read_packed(folder / ANSWERS),
                made_of=read_manifest(folder).cases,
            )
        )
    if any(OWN.rglob("*.jsonl")):
        from harness.answers.read import read_known

        own = Store.of(read_known([OWN]))
        if own.features:
            found.append(AnswerSource(name="own", title=f"your own results in {OWN}", store=own))
    if not found:
        raise UsageError("there are no results to answer from: name some, as in --results nightly.parquet, or run cases first: cumatrix run")  # fmt: skip
    return found
