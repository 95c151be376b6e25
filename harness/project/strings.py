"""CUDA C++ in texts of a Python file: CuPy's RawKernel and RawModule, PyTorch's load_inline. The file is read, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.project.constants import Unknown, constants_of, value_of

CALLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "RawKernel": ("code", ("code", "name", "options")),
    "RawModule": ("code", ("code",)),
    "load_inline": ("cuda_sources", ("name", "cpp_sources", "cuda_sources")),
}
"""By function: the argument that has the program, and what its arguments by position are called (https://docs.cupy.dev/en/stable/reference/generated/cupy.RawKernel.html, https://docs.pytorch.org/docs/stable/cpp_extension.html)."""

_OF_PYTORCH = ("torch/types.h", "cuda.h", "cuda_runtime.h")
_LARGEST = 2_000_000
_KERNEL = re.compile(r"__global__[^;{(]*?\b([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True)
class Text:
    """One program.

    Parameters
    ----------
    call : str
        The function that takes it.
    name : str
        What it is called by: its kernel, or its line where that is not told.
    line : int
        The line of the file on which it begins.
    text : str
        The program.
    options : tuple of str
        Options that the call has for the compiler.
    exact : bool
        Whether its lines are those of the file: not so where it is put together of pieces.
    """

    call: str
    name: str
    line: int
    text: str
    options: tuple[str, ...] = ()
    exact: bool = True

    @property
    def language(self) -> str:
        """``torch`` for what is compiled with PyTorch's headers."""
        return "torch" if self.call == "load_inline" else "cuda"

    def program(self, file: str) -> str:
        """The text as a file of its own, in which compilers tell lines as those of the Python file.

        What load_inline puts in front of it (https://docs.pytorch.org/docs/stable/cpp_extension.html) stands there, too.
        """
        heading = "".join(f"#include <{name}>\n" for name in _OF_PYTORCH) if self.language == "torch" else ""
        name = file.replace("\\", r"\\").replace('"', r"\"")
        return f'{heading}#line {self.line} "{name}"\n{self.text}\n'


def texts_of(path: Path) -> tuple[list[Text], list[str]]:
    """Programs in a file, in its order; and a sentence for each that only running the file would tell.

    A file that cannot be read as Python has none.
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
    """Texts that an argument is, each with the expression that it stands in."""
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
