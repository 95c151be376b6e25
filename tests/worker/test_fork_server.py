"""What a fork server makes sure of before its first cell."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from harness.protocol.backend import Unavailable
from harness.protocol.wire import Build, Ready, Setup
from harness.worker.fork_server import _hold_builds


@pytest.mark.parametrize(
    ("loaded", "held"), [("lib", True), ("lib/cu13", True), ("lib2", False), ("elsewhere/lib", False)]
)
def test_a_library_comes_from_where_it_was_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loaded: str, held: bool
) -> None:
    """cuda.core gives its place to a package below its own folder."""
    module = ModuleType("cumatrix_test_library")
    module.__file__ = str(tmp_path / loaded / "__init__.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    build = Build(module=module.__name__, folder=str(tmp_path / "lib"), version="1.0")
    setup = Setup(tmp_path, "12.9", "12.9", [], tmp_path, builds={"library": build})
    if held:
        _hold_builds(setup, Ready())
    else:
        with pytest.raises(Unavailable, match="library was to be imported from"):
            _hold_builds(setup, Ready())
