"""Reader of untrusted TOML files, with limits, and errors with file and line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^=\]\n"'])+""")
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[{]|[\]}]|\n|[^"'#\[\]{}\n]+''',
    re.DOTALL,
)

_BARE = re.compile(r"[ \t]*[\w-]+(?:[ \t]*\.[ \t]*[\w-]+)*[ \t]*", re.ASCII)

Key = tuple[str | int, ...]


class Positions:
    """Finds the line of a key.

    Parameters
    ----------
    text : str
        A text that `tomllib` accepts. In any other text, only the first lines may be known.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Key, int] = {}
        self._counts: dict[Key, int] = {}
        self.headers: dict[int, Key] = {}
        """Line of each table header, with the path of its table."""
        self._scan(text)

    def line(self, path: Key) -> int:
        """Return the line of `path`, or of the nearest enclosing table or array; 1 if neither is written."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1

    def _scan(self, text: str) -> None:
        table: Key = ()
        at, line = 0, 1
        while True:
            blank = _BLANK.match(text, at)
            assert blank is not None  # the pattern also matches an empty text
            line += blank[0].count("\n")
            at = blank.end()
            if at >= len(text):
                return
            header = len(text[at : at + 2]) - len(text[at : at + 2].lstrip("["))
            key = _KEY.match(text, at + header)
            names = _names(key[0]) if key else None
            if key is None or names is None:
                return
            if header:
                table = self.headers[line] = self._enter(names, line, element=header == 2)
            else:
                path = table
                for name in names:
                    path = (*path, name)
                    self._lines.setdefault(path, line)
            end = _skip(text, key.end() + header if header else key.end() + 1)
            line += text.count("\n", at, end)
            at = end

    def _enter(self, names: list[str], line: int, *, element: bool) -> Key:
        path: Key = ()
        for position, name in enumerate(names):
            path = (*path, name)
            last = position == len(names) - 1
            if last and element:
                self._lines.setdefault(path, line)
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
            if last or path not in self._lines:
                self._lines.setdefault(path, line)
        return path


def _names(text: str) -> list[str] | None:
    """Return the parts of a dotted key; `tomllib` reads quotes and escapes."""
    if len(text) > 1000:
        return None
    if _BARE.fullmatch(text):  # nearly every key
        return [name.strip() for name in text.split(".")]
    try:
        value: object = tomllib.loads(f"{text} = 0")
    except ValueError:
        return None
    names: list[str] = []
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        names.append(name)
    return names or None


def _skip(text: str, at: int) -> int:
    """Return the end of the value that starts at `at`: the first line break outside strings and brackets."""
    depth = 0
    while token := _TOKEN.match(text, at):
        if token[0] == "\n" and depth <= 0:
            return at
        depth += (token[0] in "[{") - (token[0] in "]}")
        at = token.end()
    return len(text)


MAX_BYTES = 1_000_000
# The memory of tomllib grows with the square of a dotted key's length.
MAX_LINE = 4_000


def read_toml_text(path: Path, shown_path: str) -> str:
    """Return the text of a file without a byte order mark; raise `CaseError` if the file cannot be TOML."""
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
    """Parse the text; raise `CaseError` if it is not TOML."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise failure(shown_path, "is nested too deeply") from None
    except ValueError as error:
        # tomllib appends the position to its message, except for a number that is too long.
        match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(match[1]) if match and match[1] else text.count("\n") + 1 if match else 0
        message = str(error)[: match.start()] if match else str(error)
        raise failure(shown_path, f"not valid TOML: {message}", line) from None


def check_integers(report: Report, data: dict[str, Any]) -> None:
    """Report integers beyond TOML's 64 bits.

    Python's integers have no limit, but Python cannot print one with more than 4300 digits.
    """
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
    """Return the error for a file as a whole."""
    return CaseError([Problem(file=file, line=line, key="", message=message)])


MAX_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One problem in a file.

    Parameters
    ----------
    file : str
        Case file, as a user would write it.
    line : int
        Line in `file`, from 1; 0 if unknown.
    key : str
        Key in dotted form (``expect.status``), or empty.
    message : str
        The problem, and the fix if it is known.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.key, self.message) if part)


class CaseError(UsageError):
    """A case that cannot be used. The message has one line with one sentence per problem."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, problems)))


class Report:
    """Collects the problems of one file, so a user gets all of them at once."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file = file
        self.positions = Positions(text)
        self.problems: list[Problem] = []

    def add(self, key: Key, message: str, *, line: int | None = None) -> None:
        """Add a problem at `key`."""
        dotted = ".".join(part for part in key if isinstance(part, str))
        self.problems.append(
            Problem(file=self.file, line=self.line(key) if line is None else line, key=dotted, message=message)
        )

    def line(self, key: Key) -> int:
        """Return the line of `key`, or of the nearest enclosing table or array."""
        return self.positions.line(key)

    def close(self) -> None:
        """Raise `CaseError` with the first problems, in the order of the file, if there are any."""
        found = sorted(self.problems, key=lambda problem: problem.line)
        if len(found) > MAX_PROBLEMS:
            message = f"and {len(found) - MAX_PROBLEMS} more"
            found[MAX_PROBLEMS:] = [Problem(file=self.file, line=0, key="", message=message)]
        if found:
            raise CaseError(found)


def shown(value: object, limit: int = 60) -> str:
    """Return a value for a message, shortened to `limit` characters."""
    try:
        text = repr(value)
    except RecursionError:  # a key of thousands of parts is as many nested tables
        return "tables within tables, thousands of them"
    return text if len(text) <= limit else text[: limit - 1] + "…"
