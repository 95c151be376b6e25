"""Values in a Python file that can be told from its syntax tree: texts, lists, paths and what is made of them."""

from __future__ import annotations

import ast
import glob
import os
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

_DEEPEST = 40
_MOST = 10_000
_KNOWN = frozenset({"sorted", "list", "tuple", "set", "glob", "join", "str", "Path", "len", "map", "filter"})


class Unknown:
    """Stands for what only running the file would tell."""


UNKNOWN = Unknown()


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that are given a value exactly once in a file, with what they are given; those that grow (``x += …``, ``x.append``) are not followed."""
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
    """The value of an expression, or `Unknown`; of a list, the entries that can be told.

    Parameters
    ----------
    node : ast.expr
        The expression.
    constants : Mapping
        From `constants_of`.
    folder : Path
        Where the file lies: what ``__file__`` and patterns of paths are about.
    missed : list of str
        Takes what could not be told, as it stands in the file.
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
    # Of two lists, the one that can be told.
    lists = [each for each in (left, right) if isinstance(each, list)]
    return lists[0] if lists and UNKNOWN in (left, right) else UNKNOWN


def _call(node: ast.Call, inside: Callable[[ast.expr], Any], folder: Path, missed: list[str]) -> Any:
    """What the usual functions of paths give: joining, the folder of this file, patterns, sorting."""
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
        # A function of the file's own that takes a list mostly adds to it: what it adds is told of, the list is taken.
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
    """Whether a pattern looks into a project only, or into one folder elsewhere: not through the whole machine."""
    parts = Path(os.path.abspath(folder / pattern)).parts
    fixed = list(takewhile(lambda part: not glob.has_magic(part), parts))
    one_folder = len(fixed) >= len(parts) - 1 and "**" not in parts
    return one_folder or Path(*fixed).is_relative_to(os.path.abspath(folder))
