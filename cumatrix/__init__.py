"""Compile CUDA code for every architecture and version, from Python.

>>> import cumatrix
>>> results = cumatrix.try_("kernel.cu", toolkit=["12.4", "13.0"], target="sm_75..sm_120")
>>> results.as_expected
>>> results.frame()

`run` puts cases through compilers, `try_` files or texts that have no case; both give `Results`, which a notebook shows as the
matrix. `iter_run` and `iter_try` give each `Cell` as it finishes. `read` opens records of earlier runs, `explain` tells the known cause of
what a compiler said, `ask` answers questions in plain words from results, `bisect` finds the release that changed an outcome, and `repro` writes a folder that
shows an outcome without cumatrix. Errors are `CumatrixError`: one sentence that says what to
do, as the command prints it.

The names in ``__all__`` are stable; everything else is internal. Names are imported on first use, so
that ``import cumatrix`` takes no time.
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
    # Notebooks complete what is kept, and none of the names that this module needs itself.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
