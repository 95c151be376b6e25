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

_QUIET = 10.0
"""Seconds without a result after which a message names the slow cells."""

_UNPACKED = 2.5
"""Approximate ratio of NVIDIA's unpacked libraries to their wheels."""


class Installing:
    """The bar of what is installed: bytes of all parts together, and which part is under way.

    Parameters
    ----------
    console : Console
        Of stderr.
    steps : sequence of Step
        All that there is to do.
    then : str
        What comes after it.
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
        """A part is begun."""
        self._step, self._written = step, Written()
        size = f", {decimal(step.size)}" if step.size else ""
        then = f"; then {self.then}" if self.then else ""
        place = f"{self.steps.index(step) + 1} of {len(self.steps)}"
        self.bar.update(self.task, description=f"{place}: {clean(step.title)}{size}{then}", completed=self._done)

    def end(self, step: Step) -> None:
        """It is installed or unavailable."""
        self._step = None
        self._done += step.size if self.total else 1
        self.bar.update(self.task, completed=self._done)

    def _bytes(self, task: Task) -> str:
        """``61.2 of 713.5 MB``; of the part under way as much as what was written for it tells."""
        if not self.total:
            return f"{task.completed:.0f}/{len(self.steps)}"
        part = share(self._written.bytes(), self._step.size) * self._step.size if self._step else 0.0
        task.completed = self._done + part
        return f"{decimal(int(task.completed))} of {decimal(self.total)}"


class Compiling:
    """The bar of what is compiled: cells that are done, and how long the others may take, by what is expected of each.

    Parameters
    ----------
    console : Console
        Of stderr.
    cells : sequence of Cell
        All of them.
    expected : callable
        Seconds that a cell is expected to take.
    jobs : int
        How many are compiled at a time.
    """

    def __init__(self, console: Console, cells: Sequence[Cell], expected: Callable[[Cell], float], jobs: int) -> None:
        self.count, self.jobs = len(cells), max(1, jobs)
        # Without a terminal nothing is shown.
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
        """A cell has finished; one without a compiler does not count for the estimate."""
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
        """``left 0:01:10``: as the cells so far took, measured by what was expected of them; nothing where none has come to its end."""
        rest = self.seconds - self.gone
        if not self.gone:
            return f"left about {_clock(rest / self.jobs)}" if self.seconds else ""
        return f"left {_clock(rest * (now - self.began) / self.gone)}"

    def waiting(self, now: float) -> str:
        """Cells that may take long, if none has finished for a while; empty if unknown."""
        if now - self.last < _QUIET:
            return ""
        for cell, _ in self.left.values():
            info = BACKENDS[cell.toolchain.backend]
            if info.startup and cell.toolchain not in self.seen:
                where = f"{info.name} {cell.toolchain.library}, CUDA {cell.toolchain.toolkit}"
                return clean(f"{where}: {info.startup}")
        return ""

    def _under_way(self, task: Task) -> str:
        return self.waiting(time.monotonic()) or task.description


class Written:
    """Bytes that the processes have written which this one has started since; by the kernel's count, /proc/PID/io of proc(5)."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def bytes(self) -> int:
        """All of them, of those that have ended as much as was seen last."""
        for pid in _children():
            try:
                lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            except OSError:
                continue
            self._seen[pid] = max(int(line.split()[1]) for line in lines if line.startswith(("wchar:", "write_bytes:")))
        return sum(self._seen.values())


def share(written: int, size: int) -> float:
    """The finished share of a download of `size` bytes after unpacking `written`: never all of it, because the ratio is not known."""
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
    """A text that is computed whenever the bar is drawn."""

    def __init__(self, text: Callable[[Task], str]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return Text(self._text(task))


def install_for(cells: Sequence[Cell], context: RunContext) -> RunContext:
    """Install what the cells need, and say on stderr what that is; see `harness.engine.install.install`."""
    console = console_for(sys.stderr)

    def tell(text: str) -> None:
        console.print(f"cumatrix: {text}", soft_wrap=True)

    then = f"{len(cells)} cells" if len(cells) > 1 else "a cell"
    return install(cells, context, shown_on(console, then), tell)


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
