"""Sessions in the documentation: typed commands, and their documented output."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(?P<kind>[\w-]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_SECONDS = 300


@dataclass(frozen=True)
class Command:
    """A command of a session.

    Parameters
    ----------
    line : int
        Line of the command in its page, from 1.
    typed : str
        The typed text, including further lines.
    said : str or None
        The output on both streams. A line ``...`` matches any lines, and ``...`` within a line any words. None if the page shows no
        output.
    """

    line: int
    typed: str
    said: str | None


def blocks(text: str, *kinds: str) -> Iterator[tuple[int, str, str]]:
    """Yield the fenced blocks of some kinds (without any: all): line of the fence, kind and text."""
    for match in _FENCE.finditer(text):
        if not kinds or match["kind"] in kinds:
            yield text.count("\n", 0, match.start("text")) + 1, match["kind"], match["text"]


def sessions(text: str) -> Iterator[list[Command]]:
    """Yield the commands of every shell block: ``console`` with its output, and ``sh`` or no language without."""
    for first, kind, block in blocks(text, "console", "sh", ""):
        yield list(_spoken(first, block) if kind == "console" else _typed(first, block))


def _spoken(first: int, block: str) -> Iterator[Command]:
    typed: list[str] = []
    said: list[str] = []
    line = first
    for number, each in enumerate(block.splitlines(), first):
        if each.startswith("$ "):
            if typed:
                yield Command(line, "\n".join(typed), "\n".join(said))
            typed, said, line = [each[2:]], [], number
        elif each.startswith("> ") and typed and not said:
            typed.append(each[2:])
        elif typed:
            said.append(each)
        else:
            raise ValueError(f"line {number}: a session begins with a command: $ …")
    if typed:
        yield Command(line, "\n".join(typed), "\n".join(said))


def _typed(first: int, block: str) -> Iterator[Command]:
    kept: list[str] = []
    for number, each in enumerate(block.splitlines(), first):
        kept.append(each)
        if not each.endswith("\\"):
            yield Command(number - len(kept) + 1, "\n".join(kept), None)
            kept = []


def run(command: Command, folder: Path) -> str:
    """Run a command and return its output of both streams in order."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # Variables of this pytest for its workers are not for a pytest in a session.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["bash", "-c", command.typed], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS,
        stdin=subprocess.DEVNULL, env={**own, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1"},
    )  # fmt: skip
    return done.stdout


def differs(command: Command, came: str, folder: Path) -> str:
    """Return the difference between the output and the page as a message; empty if there is none."""
    wanted, got = _plain(command.said or "", folder), _plain(came, folder)
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else ".*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in wanted.splitlines()
    )
    if re.fullmatch(pattern, got):
        return ""
    return f"line {command.line}: $ {command.typed}\nsays\n{got}\nand is said to say\n{wanted}"


def _plain(text: str, folder: Path) -> str:
    """Replace text that differs between runs: paths, times, cached answers, installations."""
    text = text.replace(str(folder), "FOLDER")
    text = re.sub(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds)\b", "TIME", text)
    text = re.sub(r" *\(\d+ from earlier runs\)", "", text)
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("installing ")]
    return "".join(f"{line}\n" for line in lines)
