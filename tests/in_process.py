"""Commands called as functions, which takes milliseconds instead of the second of a process."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from unittest.mock import patch

from harness.cli.main import _run

# All characters that control a terminal or reorder text. A second list, built by another rule than the code under test.
ACTING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]|[\ud800-\udfff]"
)
_MOST_SECONDS = 120


def commands(said: str) -> list[str]:
    """Return the lines that a CI reads as commands, with or without colours."""
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", said)
    lines = [line.strip() for line in re.split(r"[\r\n]", plain)]
    return [
        line for line in lines if line.startswith("::") or "##[" in line or "##vso[" in line or "##teamcity[" in line
    ]


class Hang(BaseException):
    """A command that does not end."""


class Text(io.StringIO):
    """Output stream of a command, in UTF-8."""

    encoding = "utf-8"


@dataclass(frozen=True)
class Called:
    """End of a command.

    Parameters
    ----------
    argv : tuple of str
        The command line.
    code : int
        The exit code.
    out, err : str
        The output on stdout and stderr.
    """

    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    def problem(self) -> str:
        """Return the problem of the end, or an empty text."""
        if "Traceback" in self.err or "fault of cumatrix" in self.err:
            return f"an exception:\n{self.err[-3000:]}"
        if self.code not in (0, 1, 2, 3, 4):
            return f"exit code {self.code}"
        if self.code == 2 and not self.err.startswith("cumatrix: "):
            return f"exit code 2 without a sentence: {self.err[:500]!r}"
        if found := ACTING.search(self.out + self.err):
            return f"{found[0]!r} reaches the terminal: {(self.out + self.err)[max(0, found.start() - 60) : found.end() + 60]!r}"
        if lines := commands(self.out + "\n" + self.err):
            return f"a command to a CI: {lines[0][:500]!r}"
        return ""


def call(*argv: str | Path, seconds: int = _MOST_SECONDS) -> Called:
    """Run a command to its end.

    Raises
    ------
    Hang
        If the command does not end within a multiple of its time limit.
    """
    words = tuple(map(str, argv))
    out, err = Text(), Text()
    with (
        limited(seconds),
        patch.object(sys, "argv", ["cumatrix", *words]),
        patch.dict(os.environ, {"CUMATRIX_DEBUG": "1"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code = _run()
        except Exception:  # noqa: BLE001 - that is what is looked for
            traceback.print_exc()
            code = -1
    return Called(words, code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def limited(seconds: int = _MOST_SECONDS) -> Iterator[None]:
    """Raise `Hang` in a command that does not end."""

    def end(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, end)
    rest = signal.alarm(seconds)  # the handler of pytest-timeout, if any
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.alarm(rest)
