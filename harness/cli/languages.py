"""What a file without a case is written in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from harness.errors import UsageError
from harness.project.python_kernels import has_kernels

_CUDA = (".cu", ".cuh", ".cpp")
# What CuPy makes kernels for itself; RawKernel and RawModule are given them.
_WRITTEN = re.compile(r"\b(?:ElementwiseKernel|ReductionKernel|rawkernel|fuse|name_expressions)\b")
SUFFIXES = (*_CUDA, ".py")


def languages_of(file: Path) -> tuple[str, ...]:
    """The languages of a file, as a case's ``[source]`` calls them; Python is Numba's, CuPy's or both, by what it imports.

    Raises
    ------
    UsageError
        When it is neither CUDA C++ nor Python, or cannot be read.
    """
    if file.suffix not in SUFFIXES:
        raise UsageError(f"{file} is neither CUDA C++ (.cu) nor Python (.py)")
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None
    if file.suffix in _CUDA:
        return ("cuda",)
    imported = _imported(text)
    cupy = bool(imported & {"cupy", "cupyx"})
    # What imports neither may do so by another file beside it.
    return (
        ("cupy",)
        if cupy and "numba" not in imported
        else ("python", "cupy")
        if cupy or "numba" not in imported
        else ("python",)
    )


def beside_texts(file: Path, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Languages of a Python file beside the CUDA C++ in its texts, whose programs are cases of their own.

    Numba's where it has kernels of its own, CuPy's where CuPy writes a kernel for it.
    """
    kinds = {"python": has_kernels(file), "cupy": bool(_WRITTEN.search(file.read_text("utf-8")))}
    return tuple(language for language in languages if kinds[language])


def _imported(text: str) -> set[str]:
    """Top-level packages that a program imports; none where Python does not take its text, which the interpreter that runs it will say."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}
