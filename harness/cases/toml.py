"""Read an untrusted TOML file: with limits, and errors that name file and line."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from harness.cases.errors import CaseError, Problem, Report

MAX_BYTES = 1_000_000
# tomllib needs memory by the square of a dotted key's length.
MAX_LINE = 4_000


def read_toml_text(path: Path, shown_path: str) -> str:
    """The text of a file, without a byte order mark; raises `CaseError` where it is no text that TOML could be."""
    try:
        if not path.is_file():
            raise failure(shown_path, "there is no such file")
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise failure(shown_path, f"cannot be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise failure(shown_path, f"is larger than {MAX_BYTES // 1_000_000} MB, which no case needs")
    for bad, message in ((data.find(b"\0"), "has a NUL byte"), (_not_utf8(data), "is not UTF-8")):
        if bad >= 0:
            line = data[:bad].count(b"\n") + 1
            raise failure(shown_path, f"{message}: is this a text file?", line)
    text = data.decode("utf-8-sig")
    for number, content in enumerate(text.split("\n"), start=1):
        if len(content) > MAX_LINE:
            raise failure(shown_path, f"a line may have {MAX_LINE} characters, this one has {len(content)}", number)
    return text


def _not_utf8(data: bytes) -> int:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def parse_toml(text: str, shown_path: str) -> dict[str, Any]:
    """Parse the text; raises `CaseError` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise failure(shown_path, "is nested too deeply") from None
    except ValueError as error:
        # tomllib puts the place into the sentence; a number that is too long comes without one.
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1 if match else 0
        message = str(error)[: match.start()] if match else str(error)
        raise failure(shown_path, f"not valid TOML: {message}", line) from None


def check_integers(report: Report, data: dict[str, Any]) -> None:
    """Integers have 64 bits in TOML; Python's have any number, and one that is longer than 4300 digits cannot even be shown."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*key, name), item) for name, item in value.items()]
        elif isinstance(value, list):
            waiting += [((*key, index), item) for index, item in enumerate(value)]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            report.add(key, "is an integer that does not fit into 64 bits")


def failure(file: str, message: str, line: int = 0) -> CaseError:
    """The error for a file as a whole."""
    return CaseError([Problem(file=file, line=line, key="", message=message)])
