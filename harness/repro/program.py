"""The program of a cell with its own files: headers, and modules next to a Python program."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UsageError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]{1,400})"|<([^>\n]{1,400})>)', re.MULTILINE)
_MOST_FILES, _MOST_BYTES = 5000, 64 << 20


@dataclass
class Program:
    """A program as laid out in another folder.

    Parameters
    ----------
    sources : list of str
        Places of the program's files there, in order.
    include : list of str
        Its include directories there, in search order.
    files : dict
        Every file that is needed, by its place there.
    """

    sources: list[str]
    include: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    def below(self, folder: str) -> Program:
        """The same in a folder of its own."""
        return Program(
            [f"{folder}/{place}" for place in self.sources],
            [f"{folder}/{place}" for place in self.include],
            {f"{folder}/{place}": path for place, path in self.files.items()},
        )


def gather(sources: Sequence[Path], include: Sequence[Path]) -> Program:
    """The program, and what it includes or imports out of its own folder and of `include`.

    Conditions of the preprocessor are not looked at: a header that only some compilers read is there as well. Headers whose names are made
    by macros are not found, nor are data files.

    Parameters
    ----------
    sources : sequence of Path
        The program's files: CUDA C++, or one of Python.
    include : sequence of Path
        Include directories, without the toolkit's.

    Raises
    ------
    UsageError
        When the program cannot be read, or is too much to be copied.
    """
    sources, include = list(map(_real, sources)), [_real(folder) for folder in include]
    if sources[0].suffix == ".py":
        files = _modules(sources[0])
        found, near = files, files
    else:
        found, near = _headers(sources, include)
    # What is reached by "../x.h" lies as it does here, seen from the program; so does what surrounds the program.
    around = [folder for folder in include if any(each.is_relative_to(folder) for each in sources)]
    root = Path(os.path.commonpath([*around, *(path.parent for path in (*sources, *near))]))
    places = {folder: folder.relative_to(root).as_posix() for folder in include if folder.is_relative_to(root)}
    for number, folder in enumerate((each for each in include if each not in places), 1):
        places[folder] = f"include-{number}"
    program = Program([path.relative_to(root).as_posix() for path in sources], [places[folder] for folder in include])
    for path in found:
        home = root if path.is_relative_to(root) else next(each for each in places if path.is_relative_to(each))
        below = path.relative_to(home).as_posix()
        program.files[below if home is root else f"{places[home]}/{below}"] = path
    if len(found) > _MOST_FILES or sum(path.stat().st_size for path in found) > _MOST_BYTES:
        raise UsageError(
            f"{sources[0].name} includes {len(found)} files of its own, too much for a folder to be handed on"
        )
    return program


def _real(path: Path) -> Path:
    # The program's real place decides which headers are next to it: links to files stay, those to folders are followed.
    return path.absolute().parent.resolve() / path.name


def _headers(sources: Sequence[Path], include: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files and all that they include; and those of them that are not found by way of an include directory."""
    found, near = dict.fromkeys(sources), dict.fromkeys(sources)
    waiting = list(sources)
    while waiting and len(found) <= _MOST_FILES:
        path = waiting.pop()
        for header, folder in _included(path, include):
            # Headers next to one in an include directory are found there, too.
            beside = folder is None and (path in near or not any(header.is_relative_to(each) for each in include))
            if header not in found or (beside and header not in near):
                found[header] = None
                near |= {header: None} if beside else {}
                waiting.append(header)
    return list(found), list(near)


def _included(path: Path, include: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Headers that a file names, each with its include directory, None for the file's own folder."""
    for quoted, pointed in _INCLUDE.findall(_text(path)):
        for folder in (None, *include) if quoted else include:
            header = Path(os.path.normpath((folder or path.parent) / (quoted or pointed)))
            if not os.path.isabs(quoted or pointed) and header.is_file():
                yield header, folder
                break


def _modules(source: Path) -> list[Path]:
    """The program and the modules and packages next to it that it imports, directly or not."""
    found: dict[Path, None] = {source: None}
    waiting = [source]
    while waiting and len(found) <= _MOST_FILES:
        for name in _imported(waiting.pop()):
            package, module = source.parent / name, source.parent / f"{name}.py"
            files = sorted(package.rglob("*.py")) if package.is_dir() else [module] if module.is_file() else []
            waiting += [file for file in files if file not in found]
            found |= dict.fromkeys(files)
    return list(found)


def _imported(path: Path) -> set[str]:
    try:
        tree = ast.parse(_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # that it cannot be read may be what is to be shown
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
