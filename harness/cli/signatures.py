"""``--signature``: what can be wrong with one, told before anything is compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import UsageError, did_you_mean

# With these a module can get names that its text does not show.
_UNSEEN = {"*", "exec", "eval", "globals", "setattr", "vars"}


def entries_of(files: Sequence[Path], signatures: Iterable[str]) -> dict[Path, dict[str, str]]:
    """Signatures by file and by the name of their kernel.

    Parameters
    ----------
    files : sequence of Path
        The Python programs; a signature goes to those in which its name occurs.
    signatures : iterable of str
        ``NAME=SIG``, as they were written.

    Raises
    ------
    UsageError
        When one cannot be read, or names nothing that is in a program.
    """
    found: dict[Path, dict[str, str]] = {}
    seen: set[str] = set()
    for text in signatures:
        name, _, signature = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not signature:
            raise UsageError(f"--signature {text!r} is not NAME=SIG, as in 'axpy=void(float32[:], float32)'")
        if not files:
            raise UsageError(f"--signature {text!r}: there is no Python file, and only Numba's kernels have one")
        if name in seen:
            raise UsageError(f"--signature names {name} twice: one call takes one signature of a kernel")
        seen.add(name)
        try:
            ast.parse(signature, mode="eval")
        except (SyntaxError, ValueError) as error:
            words = error.msg if isinstance(error, SyntaxError) else error
            raise UsageError(
                f"--signature {text!r}: {signature!r} cannot be read ({words}); it has the form void(float32[:], int32)"
            ) from None
        meant = [file for file in files if _may_have(file, name)]
        if not meant:
            functions = [function for file in files for function in _names(file)[0]]
            there = ", ".join(map(str, files))
            raise UsageError(f"--signature: {there} has no kernel {name}{did_you_mean(name, functions)}")
        for file in meant:
            found.setdefault(file, {})[name] = signature
    return found


def _may_have(file: Path, name: str) -> bool:
    """Whether a program's text says something of a name; what it does with it is seen when it runs."""
    functions, names = _names(file)
    return not names or name in functions or name in names or bool(names & _UNSEEN)


def _names(file: Path) -> tuple[list[str], set[str]]:
    """Functions and all other names in a program; none of them where its text cannot be read."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return [], set()  # the interpreter that runs it will say so
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.alias):
            names |= {node.name, node.asname or ""}
    return functions, names
