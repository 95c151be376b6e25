"""One-line summaries of messages: Numba puts the actual error behind and below other text."""

from __future__ import annotations

import re
from itertools import islice

from harness.protocol.text import clean, one_line

_NUMBA = re.compile(
    r"(?:\w+Error|UnsupportedBytecode\w*): (?:Failed in \w+ mode pipeline|No implementation of function |Internal error at )"
)
_STEPS = re.compile(r"Failed in \w+ mode pipeline \(step: [^()]{1,200}\) ?")
# The rest: the call as typed, and the program's lines.
_BEHIND = re.compile(r" (?:During: |File \"|There (?:is|are) \d+ candidate implementations?:)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
# Reasons for rejecting candidates, in their own words; they can be nested, and the innermost is the actual error.
_SPECIFIC = re.compile(r"^\s*(?:\w+Error): (.*)$")
_RAISED = re.compile(r"^\s*raised from ")
_PLACE = re.compile(r'\s*File "([^"\n]{1,400})", line (\d{1,9}):$')
# During: lowering "$58call.7 = call …" at d.py (5)
_DURING = re.compile(r"(\S{1,400}) \((\d{1,9})\)$")
_INSTALLED = re.compile(r"-packages[/\\]|^<")
_LINES, _WIDTH, _MOST = 2000, 4000, 12


def tells_most(message: str, log: str) -> str:
    """A message of Numba's without the steps that it went through, and with the reason that stands deep in the log; any other as it is.

    Parameters
    ----------
    message : str
        Of a diagnostic of `harness.diagnostics.parse_log`.
    log : str
        The log that it is from.
    """
    if not _NUMBA.match(message):
        return message
    name, _, words = message.partition(": ")
    said = _ADDRESS.sub("", _BEHIND.split(_STEPS.sub("", words).lstrip(), maxsplit=1)[0]).rstrip()
    reason = _reason(log) if said.startswith("No implementation of function ") else ""
    return one_line(f"{name}: {said}{': ' if reason else ''}{reason}") if said else message


def place_of(log: str) -> tuple[str, int] | None:
    """File and line of the program that Numba's message is about: the first that is not of an installed library."""
    return next(filter(None, map(_place, _lines(log))), None)


def _place(line: str) -> tuple[str, int] | None:
    match = _DURING.match(line.rpartition(" at ")[2]) if line.startswith("During: ") else _PLACE.match(line)
    return None if match is None or _INSTALLED.search(match[1]) else (match[1], int(match[2]))


def _lines(log: str) -> list[str]:
    return [line[:_WIDTH] for line in islice(clean(log).splitlines(), _LINES)]


def telling_part(message: str, log: str) -> str:
    """The lines of a log that `tells_most` and `place_of` read; a run keeps them of each record, and no whole logs."""
    if not _NUMBA.match(message):
        return ""
    return "\n".join([*_turned_down(log), *filter(_place, _lines(log))][: _MOST + 2])


def _turned_down(log: str) -> list[str]:
    """The reason why the first candidate was rejected, in its own words, with the line that ends it; empty if only types mismatched."""
    lines = _lines(log)
    end = next((number for number, line in enumerate(lines) if _RAISED.match(line)), 0)
    starts = (number for number in range(end - 1, max(end - _MOST, -1), -1) if _SPECIFIC.match(lines[number]))
    start = next(starts, None)
    return [] if start is None else lines[start : end + 1]


def _reason(log: str) -> str:
    first, *others = _turned_down(log) or [""]
    match = _SPECIFIC.match(first)
    words = " ".join([match[1], *others[:-1]]) if match else ""
    return _ADDRESS.sub("", _BEHIND.split(_STEPS.sub("", one_line(words)), maxsplit=1)[0]).strip()
