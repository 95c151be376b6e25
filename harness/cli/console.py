"""Rich's console, whose output is harmless to terminals and CI logs (`harness.cli.terminal` loads it on demand)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, TextIO, cast

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from harness.protocol.text import clean, no_command


class SafeConsole(Console):
    """A console that reads no markup, and prints no character that acts on a terminal but its own colours."""

    @classmethod
    def on(cls, stream: TextIO, width: int | None = None) -> Self:
        """One that prints on a stream."""
        return cls(file=cast("TextIO", _Lines(stream)), highlight=False, emoji=False, markup=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments of what is to be printed; those of rich's own, which move the cursor of a progress bar, stay as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))


class _Lines:
    """A stream without commands to a CI: lines are checked after they are folded and laid out in tables."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(no_command(text))
