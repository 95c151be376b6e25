"""Progress bars: bytes of installations, then the estimated compile time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from harness.backends import BACKENDS
from harness.cli.terminal import console_for
from harness.diagnostics import clean
from harness.engine.context import RunContext
from harness.engine.install import Report, Step, install
from harness.model import Cell
from harness.model.cell import named_toolkit

_QUIET = 10.0
"""Seconds without a result after which a message names the slow cells."""

_UNPACKED = 2.5
"""Approximate ratio of NVIDIA's unpacked libraries to their wheels."""


class Installing:
    """Progress bar of an installation: total bytes, and the current part.

    Parameters
    ----------
    console : Console
        Console on stderr.
    steps : sequence of Step
        All installation steps.
    then : str
        Activity after the installation.
    """

    def __init__(self, console: Console, steps: Sequence[Step], then: str = "") -> None:
        self.steps, self.then = steps, then
        self.total = sum(step.size for step in steps)
        self._done, self._written = 0.0, Written()
        self._step: Step | None = None
        self.bar = Progress(
            TextColumn("installing"), SpinnerColumn(), BarColumn(20), _Moving(self._bytes), TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self.task = self.bar.add_task("", total=self.total or len(steps))

    def begin(self, step: Step) -> None:
        """Show the start of a step."""
        self._step, self._written = step, Written()
        size = f", {decimal(step.size)}" if step.size else ""
        then = f"; then {self.then}" if self.then else ""
        place = f"{self.steps.index(step) + 1} of {len(self.steps)}"
        self.bar.update(self.task, description=f"{place}: {clean(step.title)}{size}{then}", completed=self._done)

    def end(self, step: Step) -> None:
        """Show the end of a step, installed or unavailable."""
        self._step = None
        self._done += step.size if self.total else 1
        self.bar.update(self.task, completed=self._done)

    def _bytes(self, task: Task) -> str:
        """Return ``61.2 of 713.5 MB``; the share of the current part follows from the bytes written."""
        if not self.total:
            return f"{task.completed:.0f}/{len(self.steps)}"
        part = share(self._written.bytes(), self._step.size) * self._step.size if self._step else 0.0
        task.completed = self._done + part
        return f"{decimal(int(task.completed))} of {decimal(self.total)}"


class Compiling:
    """Progress bar of a compilation: finished cells, and the remaining time, from the estimate of each cell.

    Parameters
    ----------
    console : Console
        Console on stderr.
    cells : sequence of Cell
        All cells.
    expected : callable
        Estimated seconds of a cell.
    jobs : int
        Number of concurrent cells.
    """

    def __init__(self, console: Console, cells: Sequence[Cell], expected: Callable[[Cell], float], jobs: int) -> None:
        self.count, self.jobs = len(cells), max(1, jobs)
        # Without a terminal there is no output.
        self.left = {cell.id: (cell, expected(cell)) for cell in cells} if console.is_terminal else {}
        self.seconds = sum(seconds for _, seconds in self.left.values())
        self.gone = 0.0
        self.seen: set[object] = set()
        self.began = self.last = time.monotonic()
        self.bar = Progress(
            BarColumn(20), _Moving(lambda _: f"{self.count - len(self.left)}/{self.count}"), TimeElapsedColumn(),
            _Moving(lambda _: self.time_left(time.monotonic())), _Moving(self._under_way),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self.task = self.bar.add_task("starting", total=self.seconds)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()

    def done(self, cell: Cell, outcome: str, *, compiled: bool) -> None:
        """Count a finished cell; a cell that was not compiled does not affect the estimate."""
        if cell.id not in self.left:
            return
        now = time.monotonic()
        _, seconds = self.left.pop(cell.id)
        if compiled:
            self.gone += seconds
            self.last = now
            self.seen.add(cell.toolchain)
        else:
            self.seconds -= seconds
            if not self.gone:
                self.began = self.last = now
        self.bar.update(self.task, total=self.seconds, completed=self.gone, description=clean(outcome)[:90])

    def time_left(self, now: float) -> str:
        """Return ``left 0:01:10``, scaled by the actual time of finished cells; empty without an estimate."""
        rest = self.seconds - self.gone
        if not self.gone:
            return f"left about {_clock(rest / self.jobs)}" if self.seconds else ""
        return f"left {_clock(rest * (now - self.began) / self.gone)}"

    def waiting(self, now: float) -> str:
        """Return the backend that may take long, if no cell has finished for a while; empty if unknown."""
        if now - self.last < _QUIET:
            return ""
        for cell, _ in self.left.values():
            info = BACKENDS[cell.toolchain.backend]
            if info.startup and cell.toolchain not in self.seen:
                where = f"{info.name} {cell.toolchain.library}, {named_toolkit(str(cell.toolchain.toolkit))}"
                return clean(f"{where}: {info.startup}")
        return ""

    def _under_way(self, task: Task) -> str:
        return self.waiting(time.monotonic()) or task.description


class Written:
    """Bytes written by child processes since creation of the object, from /proc/PID/io (proc(5))."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def bytes(self) -> int:
        """Return the total; ended processes count with their last known value."""
        for pid in _children():
            try:
                lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            except OSError:
                continue
            self._seen[pid] = max(int(line.split()[1]) for line in lines if line.startswith(("wchar:", "write_bytes:")))
        return sum(self._seen.values())


def share(written: int, size: int) -> float:
    """Return the finished share of a part of `size` wheel bytes after `written` bytes; it stays below 1, since the ratio varies."""
    if size <= 0:
        return 0.0
    done = written / (_UNPACKED * size)
    return done if done < 0.8 else 1 - 0.2 * 0.8 / done


def _children() -> list[int]:
    found: list[int] = []
    for place in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        try:
            found += map(int, place.read_text().split())
        except (OSError, ValueError):
            continue
    return found


def _clock(seconds: float) -> str:
    whole = max(1, round(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


class _Moving(ProgressColumn):
    """A text that is computed on every redraw."""

    def __init__(self, text: Callable[[Task], str]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return Text(self._text(task))


def install_for(cells: Sequence[Cell], context: RunContext) -> RunContext:
    """Install the missing parts of cells, and report them on stderr; see `harness.engine.install.install`."""
    console = console_for(sys.stderr)

    def tell(text: str) -> None:
        console.print(f"cumatrix: {text}", soft_wrap=True)

    then = f"{len(cells)} cells" if len(cells) > 1 else "a cell"
    return install(cells, context, shown_on(console, then), tell)


def shown_on(console: Console, then: str = "") -> Report:
    """Return a reporter that shows each part with its size, the total progress, and the activity `then`."""

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
