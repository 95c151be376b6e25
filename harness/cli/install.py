"""Installing what a run needs before it begins, with a progress bar on a terminal and a line a part elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.filesize import decimal

from harness.cli.progress import Installing
from harness.cli.terminal import console_for
from harness.engine.context import RunContext
from harness.engine.install import Report, Step, install
from harness.model import Cell


def install_for(cells: Sequence[Cell], context: RunContext, *, offline: bool) -> RunContext:
    """Install what the cells need, and say on stderr what that is; see `harness.engine.install.install`."""
    console = console_for(sys.stderr)

    def tell(text: str) -> None:
        console.print(f"cumatrix: {text}", soft_wrap=True)

    then = f"{len(cells)} cells" if len(cells) > 1 else "a cell"
    return install(cells, context, shown_on(console, then), tell, offline=offline)


def shown_on(console: Console, then: str = "") -> Report:
    """Shows on a console what is being installed: each part with its size, of all how much is there, and what comes `then`."""

    def begin(steps: Sequence[Step]) -> Callable[[Step], AbstractContextManager[None]]:
        shown = Installing(console, steps, then)

        @contextmanager
        def under(step: Step) -> Iterator[None]:
            if not console.is_terminal:
                size = f", {decimal(step.size)}" if step.size else ""
                console.print(
                    f"installing {step.title}{size} ({steps.index(step) + 1} of {len(steps)})", soft_wrap=True
                )
            with shown.bar:
                shown.begin(step)
                try:
                    yield
                finally:
                    shown.end(step)

        return under

    return begin
