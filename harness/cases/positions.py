"""Lines of keys in a TOML text, which `tomllib` checks but does not give."""

from __future__ import annotations

import re

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|[^=\]\n"'])+""")
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"""+|\'\'\'.*?\'\'\'+|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[{]|[\]}]|\n|[^"'#\[\]{}\n]+''',
    re.DOTALL,
)

_BARE = re.compile(r"[ \t]*[\w-]+(?:[ \t]*\.[ \t]*[\w-]+)*[ \t]*", re.ASCII)

Path = tuple[str | int, ...]


class Positions:
    """Finds the line of a key.

    Parameters
    ----------
    text : str
        A text that `tomllib` accepts; for any other, only the first lines may be known.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._counts: dict[Path, int] = {}
        self.headers: dict[int, Path] = {}
        """Lines of the headers of tables, with the table that begins there."""
        self._scan(text)

    def line(self, path: Path) -> int:
        """Line of `path`, or of the nearest table or array around it; 1 where nothing of it is written."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return 1

    def _scan(self, text: str) -> None:
        table: Path = ()
        at, line = 0, 1
        while True:
            blank = _BLANK.match(text, at)
            assert blank is not None  # it matches nothing, too
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

    def _enter(self, names: list[str], line: int, *, element: bool) -> Path:
        path: Path = ()
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
    """Parts of a dotted key, with quotes and escapes read by `tomllib` itself."""
    if len(text) > 1000:
        return None
    if _BARE.fullmatch(text):  # all but a few
        return [name.strip() for name in text.split(".")]
    try:
        import tomllib  # imported late: a list of cases need not wait for it

        value: object = tomllib.loads(f"{text} = 0")
    except ValueError:
        return None
    names: list[str] = []
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        names.append(name)
    return names or None


def _skip(text: str, at: int) -> int:
    """End of the value that starts at `at`: the first line break outside strings and brackets."""
    depth = 0
    while token := _TOKEN.match(text, at):
        if token[0] == "\n" and depth <= 0:
            return at
        depth += (token[0] in "[{") - (token[0] in "]}")
        at = token.end()
    return len(text)
