"""The program of a cell with the files of its own that it needs: headers, and modules beside a Python program."""

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
    """A program as it is to lie in another folder.

    Parameters
    ----------
    source : str
        The program's place there.
    include : list of str
        Include directories of its own there, in the order in which they are searched.
    files : dict
        Every file that is needed, by its place there.
    """

    source: str
    include: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)


def gather(source: Path, include: Sequence[Path]) -> Program:
    """The program, and what it includes or imports out of its own folder and of `include`.

    Conditions of the preprocessor are not looked at: a header that only some compilers read is there as well. Headers whose names are made
    by macros are not found, nor are data files.

    Parameters
    ----------
    source : Path
        CUDA C++ or Python.
    include : sequence of Path
        Include directories, without the toolkit's.

    Raises
    ------
    UsageError
        When the program cannot be read, or is too much to be copied.
    """
    source, include = _real(source), [_real(folder) for folder in include]
    found = _modules(source) if source.suffix == ".py" else _headers(source, include)
    # Headers that are reached by "../x.h" lie as they do here, seen from the program.
    outside = [folder for folder in include if not folder.is_relative_to(source.parent)]
    near = [path for path in found if not any(path.is_relative_to(folder) for folder in outside)]
    root = Path(os.path.commonpath([source.parent, *(path.parent for path in near)]))
    places = {folder: folder.relative_to(root).as_posix() for folder in include if folder.is_relative_to(root)}
    for number, folder in enumerate((each for each in include if each not in places), 1):
        places[folder] = f"include-{number}"
    program = Program(source=source.relative_to(root).as_posix(), include=[places[folder] for folder in include])
    for path in found:
        home = root if path.is_relative_to(root) else next(each for each in places if path.is_relative_to(each))
        below = path.relative_to(home).as_posix()
        program.files[below if home is root else f"{places[home]}/{below}"] = path
    if len(found) > _MOST_FILES or sum(path.stat().st_size for path in found) > _MOST_BYTES:
        raise UsageError(f"{source.name} includes {len(found)} files of its own, too much for a folder to be handed on")
    return program


def _real(path: Path) -> Path:
    # Where a program lies decides which headers it has beside it: links to files stay, those to folders are followed.
    return path.absolute().parent.resolve() / path.name


def _headers(source: Path, include: Sequence[Path]) -> list[Path]:
    found: dict[Path, None] = {source: None}
    waiting = [source]
    while waiting and len(found) <= _MOST_FILES:
        path = waiting.pop()
        for header in _included(path, include):
            if header not in found:
                found[header] = None
                waiting.append(header)
    return list(found)


def _included(path: Path, include: Sequence[Path]) -> Iterator[Path]:
    for quoted, pointed in _INCLUDE.findall(_text(path)):
        for folder in (path.parent, *include) if quoted else include:
            header = Path(os.path.normpath(folder / (quoted or pointed)))
            if not os.path.isabs(quoted or pointed) and header.is_file():
                yield header
                break


def _modules(source: Path) -> list[Path]:
    """The program and the modules and packages beside it that it imports, by whatever way round."""
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
