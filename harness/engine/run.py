"""One run of cells, from the first to the last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self

from harness.engine.context import RunContext
from harness.engine.executor import Executor, executor_named
from harness.engine.resolve import Resolver
from harness.engine.result import Result
from harness.held import TEMPORARY, sweep, temporary_folder
from harness.model import Cell
from harness.records.inputs import Inputs


class Run:
    """Resolves cells and has an executor compile the rest; a context manager, which ends every process that it started.

    Parameters
    ----------
    context : RunContext
        What was asked for, and what there is.
    jobs : int
        Cells that are compiled at the same time.
    keep : int
        Fork servers that wait for further cells, for each of them.
    executor : Executor or None
        Where cells are compiled; the one that the context names when None.
    """

    def __init__(self, context: RunContext, jobs: int = 1, keep: int = 1, executor: Executor | None = None) -> None:
        sweep(temporary_folder(), TEMPORARY)
        context.store.sweep()
        self.context = context
        if context.artifacts:
            context.artifacts.open()
        made = executor_named(context.executor or "threads")
        self.resolver = Resolver(context)
        try:
            self.executor = executor or made(self.resolver, jobs, keep)
        except BaseException:  # Ctrl-C, too
            self.resolver.close()
            raise

    def results(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Results as they finish: of cells that need no compiler first, before anything is started."""
        waiting = []
        for resolved in self.resolver.resolve_all(cells):
            if isinstance(resolved, Result):
                yield resolved
            else:
                waiting.append(resolved)
        if self.context.longest_first:
            waiting.sort(
                key=lambda prepared: -prepared.need.seconds
            )  # a long cell begun last would be waited for alone
        if waiting:
            yield from self.executor.run(waiting)

    def result(self, cell: Cell) -> Result:
        """The result of one cell."""
        (result,) = self.results([cell])
        return result

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """What outcomes of this run follow from, by their content keys."""
        return self.resolver.inputs(keys)

    def close(self) -> None:
        """End what was started, and keep what was learned."""
        self.executor.close()
        self.resolver.close()
        self.context.trace.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
