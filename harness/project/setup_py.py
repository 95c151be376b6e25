"""Read the CUDAExtension of a ``setup.py`` from its syntax tree: sources, include directories and flags. Nothing of it runs."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.project.python_ast import Unknown, value_of

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
        The function or loop that contains the statement.
    when : ast.expr or None
        The undecidable condition; None for statements that always run.
    """

    name: str
    key: str
    value: ast.expr
    adds: bool
    scope: int
    when: ast.expr | None


def assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Names with a known value, each with one expression for all assignments.

    Branches for ROCm, Windows and macOS are skipped. Values under another condition stay unknown expressions,
    so that readers can report them. A name with several conditional values, or in several functions, is left out.
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
    """Return whether a branch is the one for CUDA on Linux; None if that is undecidable."""
    text = ast.unparse(test)
    negated = (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)) or (
        isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq | ast.Is)
    )
    if _ELSEWHERE.search(text):
        # All of "and" has to hold: one part for elsewhere is enough. "or" is undecidable.
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


CALLS = ("CUDAExtension", "CppExtension")
_LARGEST = 1_000_000
_CHOSEN = re.compile(r"-gencode|compute_\d\d")
_ARCHITECTURES = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code")


@dataclass(frozen=True)
class Extension:
    """One extension.

    Parameters
    ----------
    name : str
        The module that it builds.
    line : int
        Line of the call.
    sources : tuple of str
        Its files in CUDA C++ (``.cu``), as seen from the folder of ``setup.py``.
    host : tuple of str
        Its other files, which a compiler of C++ takes.
    include, macros, flags : tuple of str
        Include directories, ``NAME`` or ``NAME=VALUE``, and options for nvcc.
    unread : tuple of str
        Parts that only running the file would reveal: each with its line.
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
    """The CUDAExtensions of a ``setup.py``.

    Names are followed, with what is added to them line by line, for CUDA on Linux; so are joined and globbed paths. What depends
    on the machine (an environment variable, a condition) is not, and is listed in `Extension.unread`. Architectures
    (``-gencode``, ``-arch``) are left out of the flags: cumatrix chooses them.

    Raises
    ------
    UsageError
        When the file cannot be read as Python.
    """
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"{os.path.relpath(path)} is no file")  # a pipe or a device may have no end
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
    constants = assigned(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == CALLS[0]]
    # Often the class is chosen first: extension = CUDAExtension if use_cuda else CppExtension.
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

    sources = [_seen(folder, text) for text in _texts(value("sources", []))]
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
        include=tuple(_seen(folder, text) for text in _texts(value("include_dirs", []))),
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


def _seen(folder: Path, text: str) -> str:
    """A path as seen from the folder of ``setup.py``; one that lies elsewhere stays as it is."""
    place = Path(os.path.normpath(folder / text))
    return place.relative_to(folder).as_posix() if place.is_relative_to(folder) else text
