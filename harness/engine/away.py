"""A run whose cells are compiled on a cluster; what is known here is answered here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.engine.cluster import Cluster, lost
from harness.engine.context import RunContext
from harness.engine.needs import Need
from harness.engine.result import Result
from harness.engine.run import Run
from harness.errors import UsageError
from harness.model import Cell, Status
from harness.records.inputs import Inputs


class AwayRun(Run):
    """Resolves cells here, and has those that need a compiler, or a part that is not here, compiled by the workers of a cluster.

    Parameters
    ----------
    context : RunContext
        What was asked for, and what there is on this machine.
    cluster : Cluster
        Which has begun this run (`Cluster.begin`).
    """

    def __init__(self, context: RunContext, cluster: Cluster) -> None:
        if context.artifacts:
            raise UsageError(
                "--keep-artifacts and --dask exclude each other: what was built lies on the cluster's machines"
            )
        super().__init__(context)
        self.cluster = cluster
        self._inputs = Inputs()

    def results(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Results as they finish: of cells that are answered here first."""
        waiting: list[tuple[Cell, Need]] = []
        for cell, resolved in zip(cells, self.resolver.resolve_all(cells), strict=True):
            # What is not installed here may be there, or is installed there.
            if isinstance(resolved, Result) and resolved.outcome.status is not Status.UNAVAILABLE:
                yield resolved
            else:
                waiting.append((cell, self.resolver.needs.of(cell)))
        for done in self.cluster.run(waiting) if waiting else ():
            if done.answer is None:
                yield from (Result(cell, lost(done.problem)) for cell in done.task.cells)
                continue
            self._inputs |= done.answer.inputs
            self.resolver.finisher.unkept.update(done.answer.unkept)
            self.cluster.told += [text for text in done.answer.told if text not in self.cluster.told]
            for cell, (outcome, cached, key) in zip(done.task.cells, done.answer.results, strict=True):
                if outcome.status not in (Status.CRASHED, Status.TIMED_OUT) and not cached:
                    self.resolver.needs.learn(cell, outcome)
                yield Result(cell, outcome, cached, key)

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """What outcomes of this run follow from, by their content keys."""
        wanted = set(keys)
        return super().inputs(wanted) | self._inputs.of(wanted)

    def close(self) -> None:
        """End what was started, here and there, and keep what was learned."""
        self.cluster.close()
        super().close()
