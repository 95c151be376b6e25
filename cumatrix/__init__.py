"""Compile CUDA code for every architecture and version, from Python.

>>> import cumatrix
>>> results = cumatrix.try_("kernel.cu", toolkit=["12.4", "13.0"], target="sm_75..sm_120")
>>> results.as_expected
>>> results.frame()

`run` compiles cases; `try_` compiles files, or the text of a program. Both return `Results`; a notebook displays them as the matrix.
`iter_run` and `iter_try` yield each `Cell` as it finishes. `read` loads the records of earlier runs. `explain` finds the known
causes of a compiler's messages. `ask` answers questions in plain words from results. `bisect` finds the release that changed an
outcome. `repro` writes a folder that reproduces an outcome without cumatrix. Every error is a `CumatrixError`; its message is the
sentence that the command prints.

The names in ``__all__`` are stable. Everything else is internal. Names are imported on first use, which keeps ``import cumatrix`` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness import __version__

if TYPE_CHECKING:
    from cumatrix._ask import Answer, Finding, ToolAnswer, ask
    from cumatrix._bisect import Bisection, Border, bisect
    from cumatrix._repro import Reproduction, repro
    from cumatrix._results import Cause, Cell, Diagnostic, Explanation, Kernel, Results, explain, read
    from cumatrix._run import Options, TryOptions, iter_run, iter_try, run, try_
    from harness.errors import CumatrixError, NothingToRun, PartUnavailable, UsageError
    from harness.records.record import RecordError

__all__ = [
    "Answer",
    "Bisection",
    "Border",
    "Cause",
    "Cell",
    "CumatrixError",
    "Diagnostic",
    "Explanation",
    "Finding",
    "Kernel",
    "NothingToRun",
    "Options",
    "PartUnavailable",
    "RecordError",
    "Reproduction",
    "Results",
    "ToolAnswer",
    "TryOptions",
    "UsageError",
    "__version__",
    "ask",
    "bisect",
    "explain",
    "iter_run",
    "iter_try",
    "read",
    "repro",
    "run",
    "try_",
]

_FROM = {
    "cumatrix._ask": ("Answer", "Finding", "ToolAnswer", "ask"),
    "cumatrix._bisect": ("Bisection", "Border", "bisect"),
    "cumatrix._repro": ("Reproduction", "repro"),
    "cumatrix._results": ("Cause", "Cell", "Diagnostic", "Explanation", "Kernel", "Results", "explain", "read"),
    "cumatrix._run": ("Options", "TryOptions", "iter_run", "iter_try", "run", "try_"),
    "harness.errors": ("CumatrixError", "NothingToRun", "PartUnavailable", "UsageError"),
    "harness.records.record": ("RecordError",),
}
_PLACES = {name: module for module, names in _FROM.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    # Notebooks complete the stable names only, not this module's own imports.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
