"""From what a compiler answered to a result, which is kept for later runs."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace

from harness.engine.answers import AnswerKey, Answers
from harness.engine.cache import lasting
from harness.engine.context import RunContext
from harness.engine.fork_server import Compiled
from harness.engine.jobs import HeaderLibraries, source_of
from harness.engine.marks import TIME, marks_of
from harness.engine.missing import without_part
from harness.engine.needs import Needs
from harness.engine.reads import DIRECTORY, Reads
from harness.engine.result import PreparedCell, Result, Worker
from harness.model import Outcome, Status
from harness.toolkits.borrowed import note
from harness.toolkits.libraries import observed_version


class Finisher:
    """Finishes the results of one run; used by several threads at a time.

    Parameters
    ----------
    context : RunContext
        What was asked for, and what there is.
    answers : Answers
        Where results are kept.
    needs : Needs
        What learns how much memory and time cells need.
    libraries : HeaderLibraries
        The header libraries of cells.

    Attributes
    ----------
    unkept : Counter
        Why results were not kept for later runs, and how many.
    """

    def __init__(self, context: RunContext, answers: Answers, needs: Needs, libraries: HeaderLibraries) -> None:
        self.context = context
        self.answers = answers
        self.needs = needs
        self.libraries = libraries
        self.unkept: Counter[str] = Counter()

    def finish(self, prepared: PreparedCell, worker: Worker, compiled: Compiled) -> Result:
        """The result of a cell that has been compiled; kept for later runs where it follows from what was read and from nothing else."""
        cell, toolchain = prepared.cell, prepared.toolchain
        assert toolchain.headers is not None
        outcome, reads = compiled.outcome, compiled.reads
        seen = (path for path, found in reads.seen.items() if found not in (None, DIRECTORY))
        if said := note(toolchain.headers.home, seen):
            outcome = replace(outcome, notes=(*outcome.notes, said))
        if outcome.status not in (Status.CRASHED, Status.TIMED_OUT):  # which may have been on their way to more
            self.needs.learn(cell, outcome)
        outcome = without_part(outcome, cell.toolchain.toolkit, toolchain.include, source_of(cell))
        libraries = {
            name: observed_version(cell.case.libraries[name], found)
            for name, found in self.libraries.of(cell).items()
            if found
        }
        observed = {**toolchain.observed(worker.ready), **({"libraries": libraries} if libraries else {})}
        outcome = replace(outcome, observed={**observed, **outcome.observed})
        return Result(cell, outcome, key=self._keep(prepared, worker, outcome, reads))

    def _keep(self, prepared: PreparedCell, worker: Worker, outcome: Outcome, reads: Reads) -> str:
        first = prepared.first_key(worker.keys[0]) if worker.keys else ""
        if first:
            self.answers.workers[first] = worker.keys[0]
        second = self._second(prepared, first, reads) if first else AnswerKey("", worker.unfollowed)
        if self.context.cache and not prepared.cell.toolchain.device and lasting(outcome):
            if second.key:
                self.context.cache.keep_outcome(second.key, outcome)
            elif second.problem:
                self.unkept[second.problem] += 1
        return second.key

    def _second(self, prepared: PreparedCell, first: str, reads: Reads) -> AnswerKey:
        definitions = json.dumps([prepared.job.definitions, prepared.job.options]).encode()
        if TIME in marks_of(definitions, ""):
            return AnswerKey("", "a macro or an option uses __TIME__, __DATE__ or __TIMESTAMP__")
        folder = str(prepared.job.source.parent)
        return self.answers.key_of(first, reads, (f"{folder}/", f"{os.path.realpath(folder)}/"))
