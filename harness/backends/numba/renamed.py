"""The name ``numba`` for numba_cuda_mlir, whose README changes imports like that.

Reproductions have a copy of this file: it imports the standard library only.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = "numba_cuda_mlir"


@contextmanager
def renamed() -> Iterator[None]:
    """Have programs that import ``numba`` get numba_cuda_mlir, where it has the module."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Numba(ModuleType):
    """The package ``numba``: names of numba_cuda_mlir, and of its types, which Numba has at its top as well."""

    def __getattr__(self, name: str) -> Any:
        for place in (PACKAGE, f"{PACKAGE}.types"):
            module = importlib.import_module(place)
            if not name.startswith("__") and hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"{PACKAGE} has no {name}")


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top != "numba":
            return None
        if not rest:
            return ModuleSpec(fullname, self, is_package=True)
        try:
            found = importlib.util.find_spec(f"{PACKAGE}.{rest}")
        except ImportError:
            found = None
        return ModuleSpec(fullname, self, loader_state=found) if found else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.loader_state is None:
            return _Numba(spec.name)
        return importlib.import_module(spec.loader_state.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give a module back the specification that the import has replaced."""
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state
