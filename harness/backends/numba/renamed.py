"""The name ``numba`` for numba_cuda_mlir in a program's imports, as the package's README changes them.

Reproductions contain a copy of this file, so it imports only the standard library.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

PACKAGE = "numba_cuda_mlir"


class Numba(ModuleType):
    """The package ``numba``: the contents of numba_cuda_mlir, and its types, which Numba has at its top level too.

    Attributes
    ----------
    imported : bool
        Whether a program imported it.
    """

    imported = False

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for place in (PACKAGE, f"{PACKAGE}.types"):
                module = __import__(place, fromlist=[name])  # the name may be a submodule
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"{PACKAGE} has no {name}")


@contextmanager
def renamed() -> Iterator[Numba]:
    """Make ``import numba`` return numba_cuda_mlir.

    The exception is that package itself, which tests whether Numba is installed.
    """
    original, numba = builtins.__import__, Numba(PACKAGE)

    def import_(
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 (as Python calls it)
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        top, _, rest = name.partition(".")
        importer = str((globals or {}).get("__name__"))
        if top != "numba" or level or importer.partition(".")[0] == PACKAGE:
            return original(name, globals, locals, fromlist or (), level)
        numba.imported = True
        if rest and fromlist:
            return original(f"{PACKAGE}.{rest}", globals, locals, fromlist)
        if rest:
            importlib.import_module(f"{PACKAGE}.{rest}")
        return numba

    builtins.__import__ = import_
    try:
        yield numba
    finally:
        builtins.__import__ = original
