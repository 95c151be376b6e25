"""Installing what a run needs before it begins, with a progress bar on a terminal and a line a part elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from harness.cli.terminal import console_for
from harness.engine.context import RunContext
from harness.engine.install import Report, Step, install
from harness.model import Cell


def install_for(cells: Sequence[Cell], context: RunContext, *, offline: bool) -> RunContext:
    """Install what the cells need, and say on stderr what that is; see `harness.engine.install.install`."""
    console = console_for(sys.stderr)

    def tell(text: str) -> None:
        console.print(f"cumatrix: {text}", soft_wrap=True)

    return install(cells, context, shown_on(console), tell, offline=offline)


def shown_on(console: Console) -> Report:
    """Shows on a console what is being installed: each part with its size, and of all how much is there."""

    def begin(steps: Sequence[Step]) -> Callable[[Step], AbstractContextManager[None]]:
        total = sum(step.size for step in steps)
        done = 0

        @contextmanager
        def under(step: Step) -> Iterator[None]:
            nonlocal done
            place = f"{steps.index(step) + 1} of {len(steps)}"
            size = f", {decimal(step.size)}" if step.size else ""
            if not console.is_terminal:
                console.print(f"installing {step.title}{size} ({place})", soft_wrap=True)
            with _progress(console) as progress:
                task = progress.add_task(f"{step.title}{size}", total=total or len(steps), completed=done, place=place)
                yield
                done += step.size if total else 1
                progress.update(task, completed=done)

        return under

    return begin


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("installing"), SpinnerColumn(), BarColumn(20), TextColumn("{task.fields[place]}"), TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
