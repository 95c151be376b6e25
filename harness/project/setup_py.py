"""The CUDAExtension calls of a ``setup.py``, read from its syntax tree: sources, include directories and flags."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.python_ast import Unknown, constants_of, value_of

CALLS = ("CUDAExtension", "CppExtension")
_LARGEST = 1_000_000
_CHOSEN = re.compile(r"-gencode|compute_\d\d")
_ARCHITECTURES = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code")


@dataclass(frozen=True)
class Extension:
    """One extension module.

    Parameters
    ----------
    name : str
        Name of the module.
    line : int
        Line of the call.
    sources : tuple of str
        CUDA C++ files (``.cu``), relative to the folder of ``setup.py``.
    host : tuple of str
        Other files, for a C++ compiler.
    include, macros, flags : tuple of str
        Include directories, ``NAME`` or ``NAME=VALUE``, and options for nvcc.
    unread : tuple of str
        Parts that only running the file would reveal, each with its line.
    """

    name: str
    line: int
    sources: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def extensions_of(path: Path) -> list[Extension]:
    """Read the CUDAExtension calls of a ``setup.py``.

    Names with one value, joined paths and path patterns are evaluated. Everything else (a growing list, a condition, an
    environment variable) is listed in `Extension.unread`. The flags omit architectures (``-gencode``, ``-arch``), which
    cumatrix sets.

    Raises
    ------
    UsageError
        If the file is not valid Python.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{os.path.relpath(path)} is no file")  # reading a pipe or a device may never end
        with open(path, "rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise UsageError(
                f"{os.path.relpath(path)} is larger than {_LARGEST // 1_000_000} MB, which no setup.py needs"
            )
        tree = ast.parse(text)
    except OSError as error:
        raise UsageError(f"{os.path.relpath(path)} cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise UsageError(
            f"{os.path.relpath(path)}{line}: cannot be read as Python: {error.args[0] if error.args else error}"
        ) from None
    constants = constants_of(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == CALLS[0]]
    # Many files choose the class first: extension = CUDAExtension if use_cuda else CppExtension.
    chosen = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and CALLS[0] in {_last(each) for each in ast.walk(node.value)}
        for target in node.targets
        if isinstance(target, ast.Name) and not isinstance(node.value, ast.Call)
    }
    calls += [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in chosen]
    return [_read(node, constants, path.parent) for node in sorted(calls, key=lambda node: node.lineno)]


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _called(node: ast.Call) -> str:
    return _last(node.func)


def _read(call: ast.Call, constants: Mapping[str, ast.expr], folder: Path) -> Extension:
    given: dict[str, ast.expr] = dict(zip(("name", "sources"), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    unread: list[str] = []

    def value(name: str, default: Any) -> Any:
        if name not in given:
            return default
        missed: list[str] = []
        found = value_of(given[name], constants, folder, missed)
        missed = [what for what in missed if not _CHOSEN.search(what)]
        if name != "name":
            unread.extend(f"{name} in line {given[name].lineno}: {what}" for what in dict.fromkeys(missed))
        return default if isinstance(found, Unknown) else found

    sources = [_relative_place(folder, text) for text in _texts(value("sources", []))]
    table = given.get("extra_compile_args")
    table = constants.get(table.id, table) if isinstance(table, ast.Name) else table
    if isinstance(table, ast.Dict):
        # Options for the host compiler alone are ignored.
        named = {
            key.value: value
            for key, value in zip(table.keys, table.values, strict=True)
            if isinstance(key, ast.Constant)
        }
        given["extra_compile_args"] = ast.copy_location(named.get("nvcc", ast.List([])), table)
    args = value("extra_compile_args", [])
    nvcc = args.get("nvcc", []) if isinstance(args, Mapping) else args
    macros = []
    for pair in value("define_macros", []):
        if isinstance(pair, list | tuple) and pair and isinstance(pair[0], str):
            text = pair[1] if len(pair) > 1 else None
            macros.append(pair[0] if text is None else f"{pair[0]}={text}")
    name = value("name", "")
    return Extension(
        name=name if isinstance(name, str) else "",
        line=call.lineno,
        sources=tuple(text for text in sources if text.endswith(".cu")),
        host=tuple(text for text in sources if not text.endswith(".cu")),
        include=tuple(_relative_place(folder, text) for text in _texts(value("include_dirs", []))),
        macros=tuple(macros),
        flags=tuple(_without_architectures(_texts(nvcc))),
        unread=tuple(unread),
    )


def _texts(value: Any) -> Sequence[str]:
    return [str(item) for item in value if isinstance(item, str | Path)] if isinstance(value, list | tuple) else []


def _without_architectures(flags: Sequence[str]) -> Iterator[str]:
    words = iter(flags)
    for word in words:
        if word in _ARCHITECTURES:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in _ARCHITECTURES)):
            yield word


def _relative_place(folder: Path, text: str) -> str:
    """Return a path relative to the folder of ``setup.py``; a path elsewhere is unchanged."""
    place = Path(os.path.normpath(folder / text))
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else text
