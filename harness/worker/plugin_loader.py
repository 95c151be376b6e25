"""Loading a backend: one of cumatrix's own, or one of another distribution, from the place that the scheduler found it in."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path

from harness.backends import BACKENDS
from harness.protocol.backend import Backend
from harness.protocol.messages import Setup


def load_backend(name: str, setup: Setup) -> Backend:
    """The backend of a name, as its setup says.

    A backend of another distribution is installed with cumatrix, and not in the environment under test: its top-level package, and
    `cumatrix`, which it imports, are made known by their files. Nothing else of that environment is.
    """
    if not setup.place:
        module, _, attribute = (setup.module or BACKENDS[name].module).partition(":")
        loaded = importlib.import_module(f"harness.backends.{module}")
    else:
        module, _, attribute = setup.module.partition(":")
        _make_known("cumatrix", str(Path(__file__).resolve().parents[2] / "cumatrix" / "__init__.py"))
        _make_known(module.partition(".")[0], setup.place)
        loaded = importlib.import_module(module)
    backend: Backend = getattr(loaded, attribute or "backend")
    return backend


def _make_known(name: str, file: str) -> None:
    if name in sys.modules:
        return
    folders = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module of Python")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
