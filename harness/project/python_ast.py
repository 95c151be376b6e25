"""Values in a Python file's syntax tree (strings, lists, paths and expressions of them), and its CUDA C++ in strings."""

from __future__ import annotations

import ast
import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

_DEEPEST = 40
_MOST = 10_000
_KNOWN = frozenset({"sorted", "list", "tuple", "set", "glob", "join", "str", "Path", "len", "map", "filter"})


class Unknown:
    """A value that only running the file would reveal."""


UNKNOWN = Unknown()


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of names that are assigned exactly once in a file.

    Names that change later (``x += …``, ``x.append``) are excluded.
    """
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            found.setdefault(node.target.id, []).append(node.value)
            if isinstance(node, ast.AugAssign):
                found[node.target.id].append(node.value)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr in ("append", "extend", "insert", "update")
        ):
            found.setdefault(node.func.value.id, []).extend([node, node])
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def value_of(node: ast.expr, constants: Mapping[str, ast.expr], folder: Path, missed: list[str], depth: int = 0) -> Any:
    """Return the value of an expression, or `UNKNOWN`; for a list, its known items.

    Parameters
    ----------
    node : ast.expr
        Expression.
    constants : Mapping
        Result of `constants_of`.
    folder : Path
        Folder of the file, the base of ``__file__`` and of path patterns.
    missed : list of str
        Receives the source text of unknown parts.
    """
    if depth > _DEEPEST:
        missed.append("nested too deeply")
        return UNKNOWN

    def inside(each: ast.expr) -> Any:
        return value_of(each, constants, folder, missed, depth + 1)

    match node:
        case ast.Constant():
            return node.value
        case ast.Name(id="__file__"):
            return str(folder / "setup.py")
        case ast.Name() if node.id in constants:
            return inside(constants[node.id])
        case ast.List() | ast.Tuple():
            return _listed(node.elts, inside)
        case ast.Dict():
            pairs = [(inside(key), inside(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
            return {key: value for key, value in pairs if isinstance(key, str) and value is not UNKNOWN}
        case ast.JoinedStr():
            parts = [
                inside(part.value) if isinstance(part, ast.FormattedValue) else inside(part) for part in node.values
            ]
            return UNKNOWN if UNKNOWN in parts else "".join(map(str, parts))
        case ast.BinOp(op=ast.Add() | ast.Div()):
            found = _sum(node.op, inside(node.left), inside(node.right))
            return found if found is not UNKNOWN else _missed(node, missed)
        case ast.ListComp(generators=[ast.comprehension(target=ast.Name() as target, ifs=[]) as loop]):
            values = inside(loop.iter)
            if isinstance(values, list) and len(values) <= _MOST:
                each = [
                    value_of(node.elt, {**constants, target.id: ast.Constant(item)}, folder, missed, depth + 1)
                    for item in values
                ]
                return [item for item in each if item is not UNKNOWN]
            return _missed(node, missed)
        case ast.Call():
            found = _call(node, inside, folder, missed)
            return found if found is not UNKNOWN else _missed(node, missed)
        case ast.Attribute(attr="parent"):
            of = inside(node.value)
            return str(Path(of).parent) if isinstance(of, str) else UNKNOWN
    return _missed(node, missed)


def _missed(node: ast.expr, missed: list[str]) -> Unknown:
    text = ast.unparse(node)
    missed.append(text if len(text) <= 60 else f"{text[:59]}…")
    return UNKNOWN


def _listed(nodes: list[ast.expr], inside: Callable[[ast.expr], Any]) -> list[Any]:
    found: list[Any] = []
    for each in nodes:
        value = inside(each.value if isinstance(each, ast.Starred) else each)
        if isinstance(each, ast.Starred) and isinstance(value, list):
            found += value
        elif value is not UNKNOWN:
            found.append(value)
    return found


def _sum(operator: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(operator, ast.Div):
        return os.path.join(left, right) if isinstance(left, str) and isinstance(right, str) else UNKNOWN
    if type(left) is type(right) and isinstance(left, str | list):
        return left + right
    # One of the lists is unknown: use the other.
    lists = [each for each in (left, right) if isinstance(each, list)]
    return lists[0] if lists and UNKNOWN in (left, right) else UNKNOWN


def _call(node: ast.Call, inside: Callable[[ast.expr], Any], folder: Path, missed: list[str]) -> Any:
    """Evaluate common path functions: joins, the folder of this file, patterns, sorting."""
    name = (
        node.func.attr
        if isinstance(node.func, ast.Attribute)
        else node.func.id
        if isinstance(node.func, ast.Name)
        else ""
    )
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name in ("resolve", "absolute", "as_posix") and owner and not node.args:
        return inside(owner)
    if name in ("getcwd", "cwd"):
        return str(folder)
    values = [inside(each) for each in node.args]
    if not values or UNKNOWN in values:
        return UNKNOWN
    if isinstance(node.func, ast.Name) and name not in _KNOWN and len(values) == 1 and isinstance(values[0], list):
        # A function of the file itself that takes a list usually extends it: use the list, and mention the call in the
        # message.
        missed.append(f"what {name}() makes of it")
        return values[0]
    match name, values:
        case "join", [str(), *_] if isinstance(owner, ast.Attribute | ast.Name) and all(
            isinstance(each, str) for each in values
        ):
            return os.path.join(*values)
        case "abspath" | "realpath" | "normpath" | "relpath" | "str" | "Path" | "fspath", [str() as path, *_]:
            return os.path.normpath(folder / path) if name in ("abspath", "realpath") else path
        case "dirname", [str() as path]:
            return os.path.dirname(path)
        case "glob" | "rglob", [str() as pattern, *_]:
            base = (
                inside(owner)
                if isinstance(owner, ast.Call | ast.BinOp) or (isinstance(owner, ast.Name) and owner.id != "glob")
                else None
            )
            base = base if isinstance(base, str) else ""
            pattern = os.path.join(base, "**" if name == "rglob" else "", pattern)
            if not _is_near(pattern, folder):
                return UNKNOWN
            return sorted(glob.glob(pattern, root_dir=folder, recursive=True)[:_MOST])
        case "sorted" | "list" | "tuple", [list() as items]:
            return sorted(items) if name == "sorted" and all(isinstance(each, str) for each in items) else items
    return UNKNOWN


def _is_near(pattern: str, folder: Path) -> bool:
    """Return whether a pattern stays in the project, or in one folder elsewhere, instead of searching the whole machine."""
    parts = Path(os.path.abspath(folder / pattern)).parts
    fixed = list(takewhile(lambda part: not glob.has_magic(part), parts))
    one_folder = len(fixed) >= len(parts) - 1 and "**" not in parts
    return one_folder or Path(*fixed).is_relative_to(os.path.abspath(folder))


CALLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "RawKernel": ("code", ("code", "name", "options")),
    "RawModule": ("code", ("code",)),
    "load_inline": ("cuda_sources", ("name", "cpp_sources", "cuda_sources")),
}
"""For each function, the argument with the program, and the names of its positional arguments.

References: https://docs.cupy.dev/en/stable/reference/generated/cupy.RawKernel.html and
https://docs.pytorch.org/docs/stable/cpp_extension.html.
"""

_OF_PYTORCH = ("torch/types.h", "cuda.h", "cuda_runtime.h")
_LARGEST = 2_000_000
_KERNEL = re.compile(r"__global__[^;{(]*?\b([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True)
class Text:
    """A program in a string.

    Parameters
    ----------
    call : str
        Function that compiles the program.
    name : str
        Name of its kernel, or its line if the kernel is unknown.
    line : int
        First line in the file.
    text : str
        Source text.
    options : tuple of str
        Compiler options of the call.
    exact : bool
        Whether the lines match those of the file. They do not if the text is assembled from pieces.
    """

    call: str
    name: str
    line: int
    text: str
    options: tuple[str, ...] = ()
    exact: bool = True

    @property
    def language(self) -> str:
        """``torch`` for a program with PyTorch's headers, else ``cuda``."""
        return "torch" if self.call == "load_inline" else "cuda"

    def program(self, file: str) -> str:
        """Return the text as a file, with line numbers of the Python file.

        It includes load_inline's prefix (https://docs.pytorch.org/docs/stable/cpp_extension.html).
        """
        heading = "".join(f"#include <{name}>\n" for name in _OF_PYTORCH) if self.language == "torch" else ""
        name = file.replace("\\", r"\\").replace('"', r"\"")
        return f'{heading}#line {self.line} "{name}"\n{self.text}\n'


def texts_of(path: Path) -> tuple[list[Text], list[str]]:
    """Return the programs in a file, in order, and a sentence for each that only running the file would reveal.

    A file that is not valid Python has no programs.
    """
    if path.stat().st_size > _LARGEST:
        return [], []
    source = path.read_text("utf-8", "replace")
    if not any(name in source for name in CALLS):
        return [], []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return [], []
    constants = constants_of(tree)
    found: list[Text] = []
    unread: list[str] = []
    for call, name in _calls(tree):
        key, order = CALLS[name]
        given = dict(zip(order, call.args, strict=False)) | {each.arg: each.value for each in call.keywords if each.arg}
        if key not in given:
            continue
        texts = list(_texts(given[key], constants, path))
        if not texts:
            unread.append(f"{path.name}:{call.lineno}: the text of this {name} is made while the program runs")
        kernel = _value(given.get("name"), constants, path) if name == "RawKernel" else None
        options = _value(given.get("extra_cuda_cflags" if name == "load_inline" else "options"), constants, path)
        words = tuple(each for each in options if isinstance(each, str)) if isinstance(options, list) else ()
        for text, node in texts:
            kernels = _KERNEL.findall(text)
            called = kernel if isinstance(kernel, str) else kernels[0] if kernels else f"line {node.lineno}"
            exact = (node.end_lineno or node.lineno) - node.lineno == text.count("\n")
            found.append(Text(name, called, node.lineno, text, words, exact))
    return list(dict.fromkeys(found)), unread


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
        function = node.func
        name = (
            function.attr
            if isinstance(function, ast.Attribute)
            else function.id
            if isinstance(function, ast.Name)
            else ""
        )
        if name in CALLS:
            yield node, name


def _texts(node: ast.expr, constants: Mapping[str, ast.expr], path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Yield the texts of an argument, each with its expression."""
    seen: set[str] = set()
    while isinstance(node, ast.Name) and node.id in constants and node.id not in seen:
        seen.add(node.id)
        node = constants[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        for each in node.elts:
            yield from _texts(each, constants, path)
        return
    value = _value(node, constants, path)
    if isinstance(value, str):
        yield value, node


def _value(node: ast.expr | None, constants: Mapping[str, ast.expr], path: Path) -> Any:
    found = value_of(node, constants, path.parent, []) if node else None
    return None if isinstance(found, Unknown) else found
