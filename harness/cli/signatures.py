"""``--signature``: what can be wrong with one, told before anything is compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.errors import UsageError, perhaps

# With these a module can get names that its text does not show.
_UNSEEN = {"*", "exec", "eval", "globals", "setattr", "vars"}


def entries_of(files: Sequence[Path], signatures: Iterable[str]) -> dict[str, str]:
    """Signatures by the name of their kernel.

    Parameters
    ----------
    files : sequence of Path
        The programs: those in Python, if there are any.
    signatures : iterable of str
        ``NAME=SIG``, as they were written.

    Raises
    ------
    UsageError
        When one cannot be read, or names nothing that is in the program.
    """
    entries: dict[str, str] = {}
    for text in signatures:
        name, _, signature = (part.strip() for part in text.partition("="))
        if not name.isidentifier() or not signature:
            raise UsageError(f"--signature {text!r} is not NAME=SIG, as in 'axpy=void(float32[:], float32)'")
        if files[0].suffix != ".py":
            raise UsageError(
                f"--signature {text!r}: {files[0].name} is no Python file, and only Numba's kernels have one"
            )
        if name in entries:
            raise UsageError(f"--signature names {name} twice: one call takes one signature of a kernel")
        try:
            ast.parse(signature, mode="eval")
        except (SyntaxError, ValueError) as error:
            words = error.msg if isinstance(error, SyntaxError) else error
            raise UsageError(
                f"--signature {text!r}: {signature!r} cannot be read ({words}); it has the form void(float32[:], int32)"
            ) from None
        entries[name] = signature
    if len(files) == 1 and entries:
        _look_for(files[0], entries)
    return entries


def _look_for(file: Path, entries: Iterable[str]) -> None:
    """Raise for a kernel of which the program's text says nothing; what it does with a name is seen when it runs."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return  # the interpreter that runs it will say so
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    names = {*functions, *(node.id for node in nodes if isinstance(node, ast.Name))}
    for node in nodes:
        if isinstance(node, ast.alias):
            names |= {node.name, node.asname or ""}
    if names & _UNSEEN:
        return
    for name in entries:
        if name not in names:
            raise UsageError(f"--signature: {file} has no kernel {name}{perhaps(name, functions)}")
