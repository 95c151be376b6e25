"""Header libraries from PyPI's wheels by exact version, stored and keyed like toolkits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from harness.errors import UsageError, did_you_mean
from harness.model import Case, HeaderLibrary, Headers
from harness.process_locks import sweep_installs
from harness.tables import read_table
from harness.toolkits.download import pinned_versions
from harness.toolkits.installed import Installed
from harness.toolkits.store import WheelStore, data_folder, move, say


def library_from(name: str, table: Mapping[str, Any]) -> HeaderLibrary:
    """Read a library from its table in ``libraries.toml`` or in a case file."""
    package, include = table.get("package", {}), table["include"]
    return HeaderLibrary(
        name=name,
        packages=dict(package) if isinstance(package, dict) else {"": package},
        include=(include,) if isinstance(include, str) else tuple(include),
        header=table.get("header", ""),
        macros=tuple(table.get("macros", ())),
        digits=tuple(table.get("digits", ())),
        releases=dict(table.get("releases", {})),
        checkout=tuple(table.get("checkout", ())),
        aliases=tuple(table.get("aliases", ())),
        tracker=table.get("tracker", ""),
        notes=table.get("notes", ""),
    )


LIBRARIES: Mapping[str, HeaderLibrary] = {
    name: library_from(name, table) for name, table in read_table("toolkits/libraries.toml").items()
}
"""The header libraries that cumatrix defines, by name."""


class LibraryStore:
    """Header libraries in a folder, by default ``$CUMATRIX_HOME/libraries/<name>/<version>``.

    Parameters
    ----------
    root : Path, optional
        Another folder.
    tell : callable
        See `harness.toolkits.store.WheelStore`.
    """

    def __init__(self, root: Path | None = None, tell: Callable[[str], None] = say) -> None:
        self.root = root or data_folder() / "libraries"
        self.tell = tell

    def find(self, library: HeaderLibrary, version: str) -> Installed | Headers | None:
        """Return a version of a library, or None if it is not installed."""
        return library.built.get(version) or self._store(library).find(version)

    def install(self, library: HeaderLibrary, version: str, *, force: bool = False) -> Installed:
        """Install a version from PyPI, completely or not at all, unless it is installed.

        Raises
        ------
        PartUnavailable
            If the wheel cannot be downloaded, its hash differs from the pinned one, or its version differs from the
            requested one.
        """
        package, number = library.wheel(version)

        def right(got: Mapping[str, str], _requested: Mapping[str, str]) -> bool:
            return all(Version(found) == Version(number) for found in got.values())

        def lay_out(site: Path, home: Path) -> tuple[dict[str, str], dict[str, str]]:
            folder = next((name for name in library.include if (site / name).is_dir()), None)
            if folder is None:
                raise UsageError(f"{package} {number} has none of the folders {', '.join(library.include)}")
            prefix = folder.rstrip("/") + "/"
            return move(site, home, lambda name: f"include/{name[len(prefix) :]}" if name.startswith(prefix) else None)

        return self._store(library).put(version, lambda _found: {package: number}, lay_out, right, force=force)

    def remove(self, library: HeaderLibrary, version: str) -> bool:
        """Remove a version; return False if it is not installed."""
        return self._store(library).remove(version)

    def folders(self) -> list[Installed]:
        """Return every version of every library with a folder, including libraries that only a case declares."""
        return [found for path in self._folders() for found in WheelStore(path, path.name).folders()]

    def installed(self, library: HeaderLibrary) -> list[Installed]:
        """Return every installed version, oldest first."""
        folder = self.root / library.name
        names = [path.name for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
        return [found for name in sorted(names, key=Version) if (found := self._store(library).find(name))]

    def _store(self, library: HeaderLibrary) -> WheelStore:
        return WheelStore(self.root / library.name, library.name, self.tell)

    def sweep(self) -> None:
        """Remove the remains of killed installations."""
        for folder in self._folders():
            sweep_installs(folder)

    def _folders(self) -> list[Path]:
        try:
            return sorted(path for path in self.root.iterdir() if path.is_dir())
        except OSError:
            return []


def observed_version(library: HeaderLibrary, installed: Installed | Headers) -> dict[str, str]:
    """Return the version that the headers define, and the version of their wheel or checkout."""
    if isinstance(installed, Headers):
        return dict(installed.origin)
    origin = {"wheel": next(iter(installed.packages.values()), "")}
    headers = version_in_headers(library, [installed.home / "include"])
    return {**origin, "headers": headers} if headers else origin


def version_in_headers(library: HeaderLibrary, include: Iterable[Path]) -> str:
    """Return the version in the first directory that contains the library's header; empty if none does."""
    for folder in include if library.header else ():
        try:
            text = (folder / library.header).read_text("utf-8", "replace")
        except OSError:
            continue
        found = [re.search(rf"#\s*define\s+{macro}\s+(\d+)", text) for macro in library.macros]
        parts = [match[1] if match else "?" for match in found]
        return _split(int(parts[0]), library.digits) if library.digits and parts[0] != "?" else ".".join(parts)
    return ""


def _split(number: int, digits: Sequence[int]) -> str:
    parts: list[int] = []
    for count in reversed(digits):
        number, part = divmod(number, 10**count)
        parts.insert(0, part)
    return ".".join(map(str, [number, *parts]))


def known_versions(library: HeaderLibrary) -> list[str]:
    """Return every version with a known wheel, oldest first."""
    if library.releases:
        return sorted(library.releases, key=Version)
    found = {version for package in library.packages.values() for version in pinned_versions(package)}
    # CUTLASS's wheels add a fourth number to CUTLASS's version.
    return sorted((re.sub(r"^(\d+\.\d+\.\d+)\.0$", r"\1", version) for version in found), key=Version)


def needed(cases: Iterable[Case]) -> list[tuple[HeaderLibrary, str]]:
    """Return every release of every library that the cases require."""
    found = {}
    for case in cases:
        for variant in case.variants:
            for name, version in variant.libraries.items():
                if is_release(version):
                    found[name, version] = (case.libraries[name], version)
    return list(found.values())


def is_release(text: str) -> bool:
    """Return whether a text is a version, and not a folder or revision (`harness.toolkits.header_sources`)."""
    try:
        return bool(Version(text)) and text == text.strip()
    except InvalidVersion:
        return False


def parse_library(text: str) -> tuple[HeaderLibrary, str]:
    """Read ``cutlass==3.5.1``.

    Raises
    ------
    UsageError
        If the text has another form, or the library is unknown.
    """
    from packaging.requirements import InvalidRequirement, Requirement  # a tenth of a run's import time

    try:
        wanted = Requirement(text)
        (specifier,) = wanted.specifier
        if wanted.extras or wanted.marker or specifier.operator != "==" or "*" in specifier.version:
            raise ValueError
    except (InvalidRequirement, ValueError):
        raise UsageError(
            f"{text!r} is neither a CUDA release such as 12.4 nor a library such as cutlass==3.5.1"
        ) from None
    if wanted.name not in LIBRARIES:
        raise UsageError(f"unknown library {wanted.name!r}{did_you_mean(wanted.name, LIBRARIES)}")
    problem = LIBRARIES[wanted.name].problem(specifier.version)
    if problem:
        raise UsageError(problem)
    return LIBRARIES[wanted.name], specifier.version
