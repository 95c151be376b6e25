"""A Rich console that escapes control sequences of terminals and CI logs (loaded on demand by `harness.cli.terminal`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, TextIO, cast

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.protocol.text import clean, no_command

_BETWEEN = 2
_LEAST = 8


def columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    """Yield the lines of each row, without trailing blanks.

    Parameters
    ----------
    rows : sequence of sequence of str
        Texts of one or more lines; all rows have the same length.
    width : int
        Total width in terminal cells. The widest columns are folded until they fit, down to 8 cells each.
    """
    widths = _fitting([max(map(_width, column), default=0) for column in zip(*rows, strict=True)], width)
    for row in rows:
        folded = [_folded(text, wide) for text, wide in zip(row, widths, strict=True)]
        height = max(map(len, folded), default=0)
        lines = ([cell[number] if number < len(cell) else "" for cell in folded] for number in range(height))
        yield [
            (" " * _BETWEEN)
            .join(text + " " * (wide - cell_len(text)) for text, wide in zip(line, widths, strict=True))
            .rstrip()
            for line in lines
        ]


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """Reduce the widest columns until all fit."""
    fitting = list(widths)
    room = width - _BETWEEN * (len(fitting) - 1)
    while fitting and sum(fitting) > room and max(fitting) > _LEAST:
        fitting[fitting.index(max(fitting))] -= 1
    return fitting


def _folded(text: str, width: int) -> list[str]:
    """Fold a text into lines of at most `width` cells; longer words are cut."""
    folded: list[str] = []
    for line in text.split("\n"):
        if cell_len(line) <= width:
            folded.append(line)
            continue
        line_so_far = ""
        for word in line.split():
            if line_so_far and cell_len(f"{line_so_far} {word}") <= width:
                line_so_far = f"{line_so_far} {word}"
                continue
            *full, last = chop_cells(word, width) or [""]
            folded += [line_so_far, *full] if line_so_far else full
            line_so_far = last
        folded.append(line_so_far)
    return folded


class SafeConsole(Console):
    """A console without markup that prints no terminal control characters except its own colours."""

    @classmethod
    def on(cls, stream: TextIO, width: int | None = None) -> Self:
        """Return a console that prints to a stream."""
        return cls(file=cast("TextIO", _Lines(stream)), highlight=False, emoji=False, markup=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield cleaned segments; rich's own control segments, which move the cursor of a progress bar, stay unchanged."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))


class _Lines:
    """A stream that escapes commands to a CI in each line, after folding and table layout."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(no_command(text))
