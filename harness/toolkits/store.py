"""Folders of what was installed from wheels."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from harness.diagnostics import no_command, one_line
from harness.errors import PartUnavailable, UsageError
from harness.model import ToolkitRef
from harness.toolkits import download
from harness.toolkits.download import TIMEOUT, pinned
from harness.toolkits.install_lock import alone, set_aside, sweep, work_folder
from harness.toolkits.layout import lay_out
from harness.toolkits.releases import (
    MANIFEST,
    PARTS,
    RELEASES,
    Installed,
    Release,
    local_toolkit,
    parts_among,
    wheels_of,
)
from harness.user_folders import users

LayOut = Callable[[Path, Path], tuple[dict[str, str], dict[str, str]]]
Wanted = Callable[[Installed | None], Mapping[str, str]]


def say(text: str) -> None:
    """Tell users something on stderr."""
    print(no_command(f"cumatrix: {one_line(text, 2000)}"), file=sys.stderr)


class WheelStore:
    """Sets of wheels in a folder, each laid out under its version.

    Parameters
    ----------
    root : Path
        The folder.
    library : str
        Name of the header library that the versions are of; empty for CUDA itself.
    tell : callable
        Is given a sentence where a user should know of something before it is done; on stderr by default.
    wait : float
        Seconds to wait for another process that installs the same.
    """

    def __init__(self, root: Path, library: str = "", tell: Callable[[str], None] = say, wait: float = TIMEOUT) -> None:
        self.root = root
        self.library = library
        self.tell = tell
        self.wait = wait

    def find(self, release: str) -> Installed | None:
        """The installation of a version, or None."""
        home = self.root / release
        try:
            manifest = json.loads((home / MANIFEST).read_text("utf-8"))
            return Installed(
                release=manifest["release"], home=home.resolve(), packages=manifest["packages"], library=self.library,
                wheels=manifest.get("wheels", {}),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def folders(self) -> list[Installed]:
        """Every version that there is a folder of; without packages where that does not tell what it holds."""
        try:
            paths = sorted(path for path in self.root.iterdir() if re.fullmatch(r"[0-9][^/]*", path.name))
        except OSError:
            return []
        return [
            self.find(path.name) or Installed(release=path.name, home=path.resolve(), packages={}, library=self.library)
            for path in paths
            if path.is_dir()
        ]

    def put(
        self,
        name: str,
        wanted: Wanted,
        lay_out: LayOut,
        right: Callable[[Mapping[str, str], Mapping[str, str]], bool],
        *,
        force: bool,
    ) -> Installed:
        """Install wheels from PyPI unless they are there; complete or not at all.

        Parameters
        ----------
        name : str
            The version to keep them under.
        wanted : callable
            Exact versions by the full name of the wheel, given what is installed.
        lay_out : callable
            Moves what was unpacked to its place (`harness.toolkits.layout`).
        right : callable
            Return whether versions by name are the requested ones.
        force : bool
            Install again what is there.

        Raises
        ------
        PartUnavailable
            When a wheel cannot be downloaded, has another hash than the pinned one, or another version than requested; when another
            process installs the same for too long.
        """
        what = f"{self.library or 'CUDA'} {name}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {self.root}: {error}; set CUMATRIX_HOME") from None
        sweep(self.root)
        with self._alone(name):
            found = self.find(name)
            asked = wanted(found)
            if found and not force and right(found.packages, asked):
                return found
            with work_folder(self.root, name) as folder:
                home = folder / "home"
                wheels = self._unpack(what, asked, folder)
                packages, hashes = lay_out(folder / "site", home)
                if not right(packages, asked):
                    spelled = " ".join(f"{item}=={version}" for item, version in asked.items())
                    raise PartUnavailable(f"{what}: asked for {spelled}, got {packages}")
                (home / MANIFEST).write_text(json.dumps(_manifest(name, home, packages, wheels, hashes)), "utf-8")
                before = set_aside(self.root, name)
                os.replace(home, self.root / name)
                if before:
                    shutil.rmtree(before)
        installed = self.find(name)
        assert installed is not None
        return installed

    def _unpack(self, what: str, asked: Mapping[str, str], folder: Path) -> list[download.Wheel]:
        wheels = download.choose(what, asked, folder)
        for wheel in wheels:
            if not wheel.known:
                self.tell(
                    f"{what}: the wheel of {wheel.name} {wheel.version} is none that cumatrix knows; "
                    f"it is taken as {wheel.host} has it, with the SHA-256 {wheel.sha256}"
                )
        download.unpack(what, wheels, folder / "site", folder)
        return wheels

    def sweep(self) -> None:
        """Remove what installations have left that were killed."""
        sweep(self.root)

    def remove(self, release: str) -> bool:
        """Remove a version; False where there was none."""
        if not (self.root / release).is_dir():
            return False
        with self._alone(release), work_folder(self.root, release) as folder:
            if not (self.root / release).is_dir():
                return False
            os.replace(self.root / release, folder / "home")
        return True

    def _alone(self, name: str) -> AbstractContextManager[None]:
        return alone(self.root, name, f"{self.library or 'CUDA'} {name}", self.tell, self.wait)


class ToolkitStore(WheelStore):
    """Toolkits in a folder: ``$CUMATRIX_HOME/toolkits``, or the user's data folder.

    Parameters
    ----------
    root : Path, optional
        Another folder.
    tell : callable
        See `WheelStore`.
    """

    def __init__(self, root: Path | None = None, tell: Callable[[str], None] = say) -> None:
        super().__init__(root or data_folder() / "toolkits", tell=tell)

    def install(self, release: Release, parts: Sequence[str] = (), *, force: bool = False) -> Installed:
        """Install a release from PyPI, with `parts` and with those that it has already, unless it is there: see `put`."""

        def wanted(found: Installed | None) -> dict[str, str]:
            every = [*parts, *parts_among(found.packages if found else {}, release.name)]
            return {**release.packages, **wheels_of(every, release.name)}

        return self.put(release.name, wanted, lay_out, lambda got, asked: dict(got) == asked, force=force)

    def of(self, ref: ToolkitRef) -> tuple[Installed | None, Installed | None]:
        """The toolkits of a compiler and of its headers; None for what is not installed."""
        toolkit = local_toolkit(Path(ref.home)) if ref.home else self.find(ref.release)
        return toolkit, toolkit if ref.headers == ref.release else self.find(ref.headers)

    def installed(self) -> list[Installed]:
        """Every toolkit that is there, oldest release first."""
        return [toolkit for name in RELEASES if (toolkit := self.find(name))]


def data_folder() -> Path:
    """``$CUMATRIX_HOME``, or the user's data folder for cumatrix."""
    home = os.environ.get("CUMATRIX_HOME")
    return Path(home).expanduser().absolute() if home else users("XDG_DATA_HOME", "~/.local/share")


def _manifest(
    name: str, home: Path, packages: Mapping[str, str], wheels: Sequence[download.Wheel], hashes: Mapping[str, str]
) -> dict[str, Any]:
    files = {}
    for path, sha256 in hashes.items():
        stat = (home / path).stat()
        files[path] = (sha256, stat.st_size, stat.st_mtime_ns)
    return {
        "release": name,
        "packages": packages,
        "wheels": {wheel.name: wheel.sha256 for wheel in wheels},
        "files": files,
    }


_NAMED = 5


def problems(installed: Installed) -> list[str]:
    """Differences between an installation and its wheels, each in a few words.

    Every file is compared with the hash in its wheel; additional files and links that lead elsewhere are named.
    The hash of each wheel is compared with the pinned one.
    """
    return [*_files(installed), *_wheels(installed)]


def not_pinned(installed: Installed) -> list[str]:
    """Wheels of it that cumatrix does not know: their hash is what the index said when they were installed."""
    found = installed.packages.items()
    return [f"{name} {version}" for name, version in found if pinned(name, version) is None]


def _wheels(installed: Installed) -> Iterator[str]:
    if not isinstance(installed.wheels, dict) or installed.wheels.keys() != dict(installed.packages).keys():
        yield "the hashes of its wheels are not known: it was installed before they were kept"
        return
    meant = _versions(installed)
    for name, version in installed.packages.items():
        if meant.get(name, version) != version:
            yield f"{MANIFEST} says {name} {version}, where {installed.what} has {meant[name]}"
            continue
        known = pinned(name, version)
        if known is not None and installed.wheels[name] not in known:
            yield f"the wheel of {name} {version} had the SHA-256 {installed.wheels[name]}, and should have {' or '.join(sorted(known))}"


def _versions(installed: Installed) -> dict[str, str]:
    """The wheels of a CUDA release and of its parts, as cumatrix knows them."""
    release = installed.release
    if installed.library or release not in RELEASES:
        return {}
    return {
        **dict(part.wheels[release] for part in PARTS.values() if release in part.wheels),
        **RELEASES[release].packages,
    }


def _files(installed: Installed) -> Iterator[str]:
    try:
        manifest = json.loads((installed.home / MANIFEST).read_text("utf-8"))
        recorded = {str(name): str(entry[0]) for name, entry in manifest["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        yield f"{MANIFEST} cannot be read ({error})"
        return
    there, links = _listed(installed.home)
    yield from _some("missing", sorted(recorded.keys() - there))
    yield from _some(
        "changed", [name for name in sorted(recorded.keys() & there) if _hash(installed.home / name) != recorded[name]]
    )
    yield from _some("not of any wheel", sorted(there - recorded.keys() - {MANIFEST}))
    yield from _some("linked to another place", links)


def _listed(home: Path) -> tuple[set[str], list[str]]:
    """Files below a folder, without links; and links that lead out of it or nowhere."""
    there, links = set(), []
    for folder, folders, names in os.walk(home):
        for name in [*folders, *names]:
            path = Path(folder, name)
            below = path.relative_to(home).as_posix()
            if path.is_symlink():
                if not path.exists() or not path.resolve().is_relative_to(home):
                    links.append(below)
            elif name in names:
                there.add(below)
    return there, sorted(links)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _some(word: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{word}: {', '.join(names[:_NAMED])}{more}"
