"""What the names of a ``setup.py`` come to, as expressions: lists that grow and tables that are filled line by line, for CUDA on Linux."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ELSEWHERE = re.compile(
    r"\b(?:hip|rocm|is_rocm_pytorch|win32|windows|darwin|macos)\b|_hip\b|hip_|rocm_|_rocm|'nt'", re.IGNORECASE
)
_CUDA = re.compile(
    r"(?!.*(?:no_|skip|disable))\w*cuda\w*|\w+ == 'cuda'|torch\.cuda\.is_available\(\)|CUDA_HOME is not None",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Step:
    """One statement about a name.

    Parameters
    ----------
    name, key : str
        The name; the entry of a table that it is about, empty for the name itself.
    value : ast.expr
        What it is given, or what is added.
    adds : bool
        Whether the value is added to what was there.
    scope : int
        The function or loop that the statement stands in.
    when : ast.expr or None
        The condition that nobody can tell; None where it is run in any case.
    """

    name: str
    key: str
    value: ast.expr
    adds: bool
    scope: int
    when: ast.expr | None


def assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Names whose value can be told, each with one expression for all that it is given.

    Branches for ROCm, Windows and macOS are passed over. What is added under another condition stays an expression that cannot be told,
    so that whoever reads it says so. A name that is given several values under conditions, or in several functions, is left out.
    """
    steps: dict[str, list[_Step]] = {}
    for step in _steps(tree.body, 0, None):
        steps.setdefault(step.name, []).append(step)
    found = {name: _value(of) for name, of in steps.items()}
    return {name: value for name, value in found.items() if value is not None}


def _value(steps: Sequence[_Step]) -> ast.expr | None:
    given = [step for step in steps if not step.adds and not step.key]
    if not given or len({step.scope for step in given}) > 1:
        return None
    if len(given) > 1 and any(step.when for step in given):
        return None
    value = given[-1].value
    for step in steps[steps.index(given[-1]) + 1 :]:
        sure = step.when is given[-1].when and step.scope == given[-1].scope
        more = step.value if sure else ast.IfExp(step.when or ast.Name("…"), step.value, ast.List([]))
        value = _filled(value, step, more) if step.key else _joined(value, more)
    return value


def _joined(value: ast.expr, more: ast.expr) -> ast.expr:
    return ast.copy_location(ast.BinOp(value, ast.Add(), more), value)


def _filled(table: ast.expr, step: _Step, more: ast.expr) -> ast.expr:
    """A table with another entry, or with more in one."""
    if not isinstance(table, ast.Dict):
        return table
    entries = {
        key.value: value for key, value in zip(table.keys, table.values, strict=True) if isinstance(key, ast.Constant)
    }
    before = entries.get(step.key)
    entries[step.key] = _joined(before, more) if step.adds and before is not None else more
    return ast.copy_location(ast.Dict([ast.Constant(key) for key in entries], list(entries.values())), table)


def _steps(body: Sequence[ast.stmt], scope: int, when: ast.expr | None) -> Iterator[_Step]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.For() | ast.While():
                yield from _steps(node.body, node.lineno, when)
            case ast.If():
                ours = _ours(node.test)
                if ours is not False:
                    yield from _steps(node.body, scope, when if ours else node.test)
                if ours is not True:
                    yield from _steps(node.orelse, scope, when if ours is False else ast.UnaryOp(ast.Not(), node.test))
            case ast.With() | ast.Try():
                yield from _steps(node.body, scope, when)
            case _:
                yield from (_Step(*each, scope, when) for each in _said(node))


def _ours(test: ast.expr) -> bool | None:
    """Whether a branch is the one for CUDA on Linux; None where nobody can tell."""
    text = ast.unparse(test)
    negated = (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)) or (
        isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.Is)
    )
    if _ELSEWHERE.search(text):
        # All of "and" has to hold: one part that is of elsewhere is enough. Of "or", nobody can tell.
        if isinstance(test, ast.BoolOp):
            parts = [_ours(part) for part in test.values]
            return False if isinstance(test.op, ast.And) and False in parts else None
        return negated
    return True if _CUDA.fullmatch(text) else None


def _said(node: ast.stmt) -> Iterator[tuple[str, str, ast.expr, bool]]:
    """Name, entry, value, and whether it is added."""
    match node:
        case ast.Assign(targets=targets):
            for target in targets:
                for name, key in _target(target):
                    yield name, key, node.value, False
        case ast.AnnAssign(value=ast.expr() as value):
            for name, key in _target(node.target):
                yield name, key, value, False
        case ast.AugAssign(op=ast.Add()):
            for name, key in _target(node.target):
                yield name, key, node.value, True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=called), args=[value])):
            for name, key in _target(owner):
                if called == "append":
                    yield name, key, ast.List([value]), True
                elif called in ("extend", "update", "insert"):
                    yield name, key, value, True


def _target(node: ast.expr) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Name(id=name):
            yield name, ""
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)):
            yield name, key
