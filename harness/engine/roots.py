"""Folders that have another place on every machine, under the names by which keys and lists of files know them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import harness
from harness.engine.reads import ASPECTS, plain
from harness.toolkits.store import data_folder

_MOST = 1 << 14
"""Names that are remembered."""

_SYSTEM = ("/", "/usr", "/usr/local")
"""Prefixes of interpreters that hold the system's files, which have the same place everywhere."""

_INSTALLED = frozenset(("$CUMATRIX_HOME", "$CUMATRIX", "$PYTHON"))
"""Roots of what an installer puts there."""

_LIBRARY = re.compile(r"\blib(?:64)?/python3\.\d+/")
"""Libraries of an interpreter below the home, as uv and pyenv install it."""


class Roots:
    """Names of paths: the same file has the same name on every machine, wherever its folder lies there.

    As ccache's ``base_dir`` (https://ccache.dev/manual/latest.html#config_base_dir): what a file says counts, and not in whose
    home it lies. A path below none of the folders is its own name.

    Parameters
    ----------
    folders : Mapping[str, str]
        Absolute folder by name. Where links lead to it, what they lead to has a name of its own.
    """

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.folders: dict[str, str] = {}
        for name, folder in folders.items():
            place, real = os.path.abspath(folder), os.path.realpath(folder)
            self.folders[name] = place
            if real != place:
                self.folders[f"{name}~"] = real
        pairs = [(place, name) for name, place in self.folders.items() if place != "/"]
        self._deepest_first = sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))
        self._names: dict[str, str] = {}

    @classmethod
    def of(cls, python: str, here: Path | None = None, more: Mapping[str, str] | None = None) -> Roots:
        """Those of this process.

        Parameters
        ----------
        python : str
            Interpreter of the environment under test.
        here : Path, optional
            What stands for the folder in which the run was asked for; the current one when left out.
        more : Mapping, optional
            Further ones.
        """
        found = {
            "$HERE": str(here or Path.cwd()),
            "$CUMATRIX_HOME": str(data_folder()),
            "$CUMATRIX": str(Path(harness.__file__).parent),
            "$HOME": os.path.expanduser("~"),
            **(more or {}),
        }
        prefix = os.path.dirname(os.path.dirname(python))
        if os.path.isabs(prefix) and prefix not in _SYSTEM:
            found["$PYTHON"] = prefix
        return cls(found)

    def name(self, path: str) -> str:
        """The name of an absolute path, or of one after one of `ASPECTS`."""
        # Cells read much the same files.
        name = self._names.get(path)
        if name is None:
            if len(self._names) >= _MOST:
                self._names.clear()
            name = self._names[path] = self._name(path)
        return name

    def _name(self, path: str) -> str:
        for aspect in ASPECTS:
            if path.startswith(aspect):
                return aspect + self.name(path.removeprefix(aspect))
        for folder, name in self._deepest_first:
            if path.startswith(folder) and (len(path) == len(folder) or path[len(folder)] == "/"):
                return name + path[len(folder) :]
        return path

    def is_own(self, path: str) -> bool:
        """Whether a file is the user's: its folder has a name, and is none of an interpreter, of toolkits or of cumatrix itself."""
        root, _, rest = self.name(plain(path)).partition("/")
        return bool(root) and root.rstrip("~") not in _INSTALLED and not _LIBRARY.search(rest)

    def path(self, name: str) -> str | None:
        """The path of a name; None where there is no such folder here."""
        for aspect in ASPECTS:
            if name.startswith(aspect):
                found = self.path(name.removeprefix(aspect))
                return None if found is None else aspect + found
        root, slash, rest = name.partition("/")
        if root:
            return self.folders[root] + slash + rest if root in self.folders else None
        for other, folder in self.folders.items():
            if other.startswith("/") and (name == other or name.startswith(f"{other}/")):
                return folder + name[len(other) :]
        return name

    def names(self, paths: str) -> str:
        """Names of the parts of a variable such as ``PATH``."""
        return os.pathsep.join(map(self.name, paths.split(os.pathsep)))
