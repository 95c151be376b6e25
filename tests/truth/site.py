"""The place of a pair: a real folder, toolkit, environment and command."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from venvs import python_with

from harness.cli.main import cumatrix
from harness.toolkits import RELEASES, ToolkitStore

from .changes import Built, Change, Content, Variable, put
from .own import Own, make_own
from .pair import Pair

RELEASE = {"nvcc": "13.0", "torch-nvcc": "13.0"}
REQUIREMENTS = {
    "cupy-nvrtc": ("cupy-cuda12x==13.1.0",),
    "cupy-jitify": ("cupy-cuda12x==13.1.0",),
    "numba": ("numba==0.59.1",),
    "numba-cuda": ("numba-cuda==0.15.0",),
    "torch-nvcc": ("torch==2.11.0", "ninja==1.13.0", "numpy==2.2.6", "setuptools==80.9.0"),
}
SIGNATURE = "k=void(int32[:])"
# Keys that differ between two runs with one outcome. The cell whose step is shared depends on the run.
_PASSING = ("seconds", "cached", "run", "peak_bytes", "fingerprint", "notes", "shared_steps")


class Site:
    """The place of a pair.

    Parameters
    ----------
    pair, backend : Pair and str
        The pair, and one of its backends.
    folder : Path
        An empty folder.
    patch : MonkeyPatch
        Sets environment variables.
    """

    def __init__(self, pair: Pair, backend: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.pair, self.backend, self.patch = pair, backend, patch
        self.here = folder / "here"
        self.release = RELEASE.get(backend, "12.4")
        self.store = ToolkitStore()
        self.store.install(RELEASES[self.release])
        patch.setenv("CUMATRIX_CACHE", str(folder / "cache"))
        original = self.store.root / self.release
        self.places = {
            "here": str(self.here),
            "store": str(original),
            "path": os.environ["PATH"],
            "unique": f"truth_{uuid.uuid4().hex}",
        }
        self.python = python_with(*REQUIREMENTS[backend]) if backend in REQUIREMENTS else ""
        if pair.environment != "shared":
            own: Own = make_own(pair.environment, self.python, folder / "env")
            self.python = own.python
            self.places |= {"site": str(own.site), "source": str(own.source)}
        if pair.copy:
            home = folder / "data" / "toolkits" / self.release
            copy_tree(original, home)
            self.places["toolkit"] = str(home)
        if pair.copy == "store":
            patch.setenv("CUMATRIX_HOME", str(folder / "data"))

    def filled(self, text: str) -> str:
        """Fill in the folders that a text names."""
        for name, place in self.places.items():
            text = text.replace(f"@{name}@", place)
        return text

    def path(self, name: str) -> Path:
        """Return the path of a file of the pair."""
        return self.here / self.filled(name)

    def before(self) -> None:
        """Create state A."""
        for name, content in self.pair.files.items():
            put(self.path(name), self._filled_content(content))
        for name, value in self.pair.variables.items():
            self.patch.setenv(name, self.filled(value))

    def _filled_content(self, content: Content) -> Content:
        if isinstance(content, Built):
            return replace(content, options=tuple(map(self.filled, content.options)))
        return self.filled(content) if isinstance(content, str) else content

    def change(self) -> None:
        """Change state A to B."""
        for change in self.pair.change:
            if isinstance(change, Change):
                change.act(self.path(change.name), self.filled)
            elif isinstance(change, Variable):
                self.patch.delenv(change.name, raising=False)
                if change.value is not None:
                    self.patch.setenv(change.name, self.filled(change.value))

    def close(self) -> None:
        """Remove files outside of the pair's folders."""
        changed = [change.name for change in self.pair.change if isinstance(change, Change)]
        for name in {*self.pair.files, *changed}:
            if "@unique@" in name:
                self.path(name).unlink(missing_ok=True)

    def argv(self, *more: str) -> list[str]:
        """Return the words of the command line."""
        python = self.backend.startswith("numba")
        program = str(self.here / ("kernel.py" if python else "kernel.cu"))
        command = [self.filled(word) for word in self.pair.command] or ["try", program]
        toolkit = self.places["toolkit"] if self.pair.copy == "local" else self.release
        axes = ["-b", self.backend, "-t", toolkit, "-a", "sm_80", "-j", "1", "--json"]
        own = [self.filled(word) for word in self.pair.args]
        own += ["--device-only"] if self.backend == "nvcc" and not self.pair.host and not self.pair.command else []
        signature = ["--signature", SIGNATURE] if python and not self.pair.command else []
        return [*command, *axes, *(["--python", self.python] if self.python else []), *signature, *own, *more]

    def run(self, *more: str) -> dict[str, Any]:
        """Run the command as users do; return its only record."""
        done = CliRunner().invoke(cumatrix, self.argv(*more), standalone_mode=False)
        if done.exception:
            raise AssertionError(f"cumatrix {' '.join(self.argv(*more))}: {done.exception!r}") from done.exception
        record: dict[str, Any]
        (record,) = (json.loads(line) for line in done.stdout.splitlines())
        return record


def told(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without the parts that can differ between runs."""
    return {key: value for key, value in record.items() if key not in _PASSING}


def short(record: Mapping[str, Any]) -> str:
    """Return a record in one line, for messages."""
    code = (record["artifact"] or {}).get("sha256", "")[:8]
    why = "" if code else f" {record['reason']} {record['log'][:200]!r}"
    return f"{record['status']}{code and f' {code}'}{', cached' if record['cached'] else ''}{why}"


def copy_tree(source: Path, target: Path, *, link_above: int | None = None) -> None:
    """Copy a folder without hard links, which would change the status of the originals during other tests.

    Files of more than `link_above` bytes become symbolic links.
    """

    def copy(one: str, other: str) -> None:
        if link_above is not None and os.path.getsize(one) > link_above:
            os.symlink(one, other)
        else:
            shutil.copy2(one, other)

    shutil.copytree(source, target, symlinks=True, copy_function=copy, dirs_exist_ok=True)
