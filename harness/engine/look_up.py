"""Answers of earlier runs, looked up for many cells at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from harness.engine.answers import Answers
from harness.engine.cache import ResultStore
from harness.engine.result import Result
from harness.model import Cell, Outcome
from harness.records.artifact_folder import ArtifactFolder

Firsts = Mapping[str, str]
"""First keys under which a cell's answer may be found, each with the key of the worker that it stands for."""


class LookUp:
    """Finds results of cells in the cache.

    Parameters
    ----------
    cache : ResultStore or None
        The cache; None finds nothing.
    answers : Answers
        What makes its keys.
    artifacts : ArtifactFolder, optional
        Where what was built is kept: a cell is not answered whose artifact is not there.
    """

    def __init__(self, cache: ResultStore | None, answers: Answers, artifacts: ArtifactFolder | None = None) -> None:
        self.cache = cache
        self.artifacts = artifacts
        self.answers = answers

    def all(self, asked: Sequence[tuple[Cell, Firsts]]) -> list[Result | None]:
        """The result of each cell, or None; what the cache has of them is read in two queries."""
        if self.cache and len(asked) > 1:
            self.cache.read_ahead(self.answers.unread(chain.from_iterable(firsts for _, firsts in asked)))
        keys = [list(self._keys(firsts)) for _, firsts in asked]
        if self.cache and len(asked) > 1:
            self.cache.read_ahead(chain.from_iterable(keys))
        return [self._first(cell, own, firsts) for (cell, firsts), own in zip(asked, keys, strict=True)]

    def one(self, cell: Cell, firsts: Firsts) -> Result | None:
        """The result of one cell, or None."""
        return self._first(cell, self._keys(firsts), firsts)

    def close(self) -> None:
        """Note what was asked for."""
        if self.cache:
            self.cache.note_use()

    def _keys(self, firsts: Firsts) -> Iterable[str]:
        return chain.from_iterable(map(self.answers.keys, firsts))

    def _first(self, cell: Cell, keys: Iterable[str], firsts: Firsts) -> Result | None:
        if self.cache is None:
            return None
        for key in keys:
            if (outcome := self.cache.outcome(key)) and self._is_kept(outcome):
                first = self.answers.origins[key][0]
                self.answers.workers[first] = firsts[first]
                return Result(cell, outcome, True, key, self.cache.taken_from(key))
        return None

    def _is_kept(self, outcome: Outcome) -> bool:
        made = outcome.artifact
        return self.artifacts is None or made is None or self.artifacts.has(made.format, made.sha256, made.bytes)
