"""Numba's kernels in files of Python, told from their syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_JIT = re.compile(r"cuda\.jit|\bcuda\b.*\bjit\b")
_LARGEST = 2_000_000


def has_kernels(path: Path) -> bool:
    """Whether a file has functions under ``cuda.jit``; one that cannot be read as Python may have."""
    try:
        return any(True for _ in _kernels(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError, RecursionError):
        return True


def python_programs(root: Path, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Files with kernels that have types, and a sentence for each kernel that has none."""
    typed: list[str] = []
    left_out: list[str] = []
    for name in names:
        path = root / name
        text = path.read_text("utf-8", "replace") if path.stat().st_size <= _LARGEST else ""
        if not _JIT.search(text):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        kernels = list(_kernels(tree))
        without = [kernel for kernel, has_types, inside in kernels if not has_types and not inside]
        if any(has_types and not inside for _, has_types, inside in kernels):
            typed.append(name)
        elif inner := [kernel for kernel, has_types, inside in kernels if has_types and inside]:
            left_out.append(f"{name}: kernel {inner[0]} is defined in a function, which only a call of it compiles")
        if without:
            which = f"{', '.join(without[:4])}{', …' if len(without) > 4 else ''}"
            left_out.append(
                f'{name}: kernel {which} has no types: say them in signatures = {{ {without[0]} = "void(float32[:])" }}'
            )
    return typed, left_out


def _kernels(tree: ast.AST, inside: bool = False) -> Iterator[tuple[str, bool, bool]]:
    """Names of functions under ``cuda.jit``, each with whether the decorator has types, and whether it stands in another function."""
    for node in ast.iter_child_nodes(tree):
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            call = decorator if isinstance(decorator, ast.Call) else None
            function = call.func if call else decorator
            if (
                isinstance(function, ast.Attribute)
                and function.attr == "jit"
                and isinstance(function.value, ast.Name)
                and function.value.id == "cuda"
            ):
                device = call and any(keyword.arg == "device" for keyword in call.keywords)
                if not device and isinstance(node, ast.FunctionDef):
                    yield node.name, bool(call and call.args), inside
        yield from _kernels(node, inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))
