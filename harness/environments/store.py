"""Environments in a folder, keyed by their resolved requirements. The first process that needs one creates it."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.environments.releases import Python
from harness.environments.requirements import Recipe, Resolved, checked_lock
from harness.errors import PartUnavailable, UsageError
from harness.process_locks import TEMPORARY, HeldFolder, alone, set_aside, sweep_installs, temporary_folder, work_folder
from harness.toolkits.download import TIMEOUT, run_uv
from harness.toolkits.store import data_folder, say

__all__ = ["MANIFEST", "EnvironmentStore", "Made", "Resolved"]

MANIFEST = "cumatrix-environment.json"
"""The file in an environment that describes its content."""
_RESOLVED = ".resolved"


@dataclass(frozen=True, kw_only=True)
class Made:
    """An existing environment.

    Parameters
    ----------
    key : str
        Name of its folder.
    home : Path
        Its folder.
    library, version : str
        The library under test.
    interpreter : Python
        The Python that created it.
    packages : Mapping[str, str]
        Versions of the installed packages by normalized name.
    released : str
        Release date; empty if unknown.
    """

    key: str
    home: Path
    library: str
    version: str
    interpreter: Python
    packages: Mapping[str, str]
    released: str = ""

    @property
    def python(self) -> str:
        """Path of its interpreter."""
        return str(self.home / "bin" / "python")

    def size(self) -> int:
        """Return the size of its files in bytes, including files shared with uv's cache."""
        return sum(path.lstat().st_size for path in self.home.rglob("*") if not path.is_dir())


class EnvironmentStore:
    """Environments in a folder, by default ``$CUMATRIX_HOME/environments`` or the user's data folder.

    Parameters
    ----------
    root : Path, optional
        Another folder.
    tell : callable
        Receives a sentence before a step that the user should know about; prints it on stderr by default.
    wait : float
        Seconds to wait for another process that creates the same environment.
    offline : bool
        Whether to avoid querying an index.
    """

    def __init__(
        self,
        root: Path | None = None,
        tell: Callable[[str], None] = say,
        wait: float = TIMEOUT,
        *,
        offline: bool = False,
    ) -> None:
        self.root = root or data_folder() / "environments"
        self.tell = tell
        self.wait = wait
        self.offline = offline

    def resolve(self, recipe: Recipe) -> Resolved:
        """Resolve a recipe to exact versions, and store the resolution for later calls.

        Raises
        ------
        PartUnavailable
            If uv finds no resolution, or none is stored and the store is offline.
        """
        kept = self.root / _RESOLVED / f"{recipe.key}.toml"
        try:
            return Resolved(recipe=recipe, lock=checked_lock(kept.read_text("utf-8")))
        except (OSError, ValueError):
            pass
        what = f"{recipe.distribution} {recipe.version}"
        if self.offline:
            raise PartUnavailable(f"{what} is not installed, and --offline queries no index")
        self.ready()
        with HeldFolder(temporary_folder(), TEMPORARY) as folder:
            requirements_in = folder / "requirements.in"
            requirements_in.write_text("".join(f"{text}\n" for text in recipe.requirements), "utf-8")
            words = [
                "pip",
                "compile",
                "--no-header",
                "--no-annotate",
                "--format",
                "pylock.toml",
                "--only-binary",
                ":all:",
            ]
            words += [
                "--python",
                recipe.python.path,
                *(["--exclude-newer", recipe.before] if recipe.before else []),
                str(requirements_in),
            ]
            lock = run_uv(what, words, folder)
        kept.parent.mkdir(exist_ok=True)
        # Written atomically; two processes with the same recipe write the same text.
        with tempfile.NamedTemporaryFile("w", dir=kept.parent, prefix=".", delete=False, encoding="utf-8") as file:
            file.write(checked_lock(lock))
        os.replace(file.name, kept)
        return Resolved(recipe=recipe, lock=lock)

    def find(self, resolved: Resolved) -> Made | None:
        """Return an environment, or None if it does not exist."""
        return self.read(resolved.key)

    def make(self, resolved: Resolved, *, force: bool = False) -> Made:
        """Create an environment, completely or not at all, unless it exists.

        Raises
        ------
        PartUnavailable
            If a wheel is unavailable, or its hash differs from the index's, or another process takes too long to create the same
            environment.
        """
        recipe, key = resolved.recipe, resolved.key
        what = f"{recipe.distribution} {recipe.version}"
        self.ready()
        with alone(self.root, key, what, self.tell, self.wait):
            found = self.read(key)
            if found and not force:
                return found
            with work_folder(self.root, key) as folder:
                home, lock = folder / "home", folder / "pylock.toml"
                lock.write_text(resolved.lock, "utf-8")
                run_uv(
                    what, ["venv", "--relocatable", "--no-project", "--python", recipe.python.path, str(home)], folder
                )
                run_uv(
                    what,
                    ["pip", "install", "--no-deps", "--python", str(home / "bin" / "python"), "-r", str(lock)],
                    folder,
                )
                (home / MANIFEST).write_text(json.dumps(_manifest(resolved)), "utf-8")
                before = set_aside(self.root, key)
                os.replace(home, self.root / key)
                if before:
                    shutil.rmtree(before)
        made = self.read(key)
        if made is None:
            raise PartUnavailable(f"{what}: {recipe.python.path} makes no environment that can be used")
        return made

    def installed(self) -> list[Made]:
        """Return every existing environment, sorted by key."""
        try:
            names = sorted(path.name for path in self.root.iterdir() if not path.name.startswith("."))
        except OSError:
            return []
        return [made for name in names if (made := self.read(name))]

    def remove(self, made: Made) -> bool:
        """Remove an environment; return False if it does not exist."""
        with alone(self.root, made.key, made.key, self.tell, self.wait):
            if not (self.root / made.key).is_dir():
                return False
            with work_folder(self.root, made.key) as folder:
                os.replace(self.root / made.key, folder / "home")
        return True

    def sweep(self) -> None:
        """Remove the remains of killed processes."""
        sweep_installs(self.root)

    def ready(self) -> None:
        """Create the folder, and remove the remains of killed processes from it."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {self.root}: {error}; set CUMATRIX_HOME") from None
        sweep_installs(self.root)

    def read(self, key: str) -> Made | None:
        """Read the environment of a key; return None if it does not exist."""
        home = self.root / key
        try:
            manifest = json.loads((home / MANIFEST).read_text("utf-8"))
            made = Made(
                key=key, home=home, library=manifest["library"], version=manifest["version"], interpreter=Python(**manifest["python"]),
                packages=manifest["packages"], released=manifest.get("released", ""),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # The Python that created it may have been removed.
        return made if os.access(made.python, os.X_OK) else None


def _manifest(resolved: Resolved) -> dict[str, Any]:
    recipe = resolved.recipe
    return {
        "library": recipe.library,
        "version": recipe.version,
        "python": asdict(recipe.python),
        "packages": resolved.packages,
        "requirements": recipe.requirements,
        "before": recipe.before,
        "released": recipe.released,
    }
