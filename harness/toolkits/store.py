"""Toolkits installed from wheels, laid out as a CUDA_HOME."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from harness.diagnostics import no_command, one_line
from harness.errors import PartUnavailable, UsageError
from harness.model import ToolkitRef
from harness.process_locks import alone, set_aside, sweep_installs, work_folder
from harness.tables import users
from harness.toolkits import download
from harness.toolkits.download import TIMEOUT, pinned
from harness.toolkits.installed import MANIFEST, Installed
from harness.toolkits.releases import (
    PARTS,
    RELEASES,
    BundledTools,
    Release,
    local_toolkit,
    parts_among,
    wheels_of,
)
from harness.toolkits.rocm import rocm_in

# First folder of a wheel's component (nvidia/cuda_runtime/lib/…, nvidia/cu13/lib/…) -> folder of the CUDA_HOME.
_FOLDERS = {"bin": "bin", "include": "include", "lib": "lib64", "lib64": "lib64", "nvvm": "nvvm"}


def lay_out(site: Path, home: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Move the files of a toolkit's wheels to their places below `home`; see `move`."""
    packages, hashes = move(site, home, _place)
    for place in hashes:
        if place.startswith(("bin/", "nvvm/bin/")):
            (home / place).chmod(0o755)
    _complete(home)
    return packages, hashes


def move(site: Path, home: Path, place_of: Callable[[str], str | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Move the files of wheels unpacked into `site` to their places below `home`.

    Parameters
    ----------
    site, home : Path
        Source and destination.
    place_of : callable
        Maps a file's name in the wheel to its place below `home`; None for a file that is not needed.

    Returns
    -------
    packages : dict
        Versions of the wheels by name, from their metadata.
    hashes : dict
        SHA-256 (hexadecimal) of every file by path below `home`, from the wheels' RECORD files.

    Raises
    ------
    PartUnavailable
        If a wheel contains no needed file, or names a file outside itself.
    """
    from importlib.metadata import Distribution  # only installations need it

    packages: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for info in sorted(site.glob("*.dist-info")):
        distribution = Distribution.at(info)
        packages[distribution.metadata["Name"]] = distribution.version
        placed = False
        for name, hashed, _ in csv.reader((info / "RECORD").read_text("utf-8").splitlines()):
            place = place_of(name)
            if place is None or not hashed.startswith("sha256="):
                continue
            if os.path.isabs(name) or ".." in name.split("/"):
                raise PartUnavailable(
                    f"the wheel {info.name.removesuffix('.dist-info')} names a file outside of itself: {name}"
                )
            target, placed = home / place, True
            encoded = hashed.removeprefix("sha256=")
            digest = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
            if place in hashes:  # two wheels contain the file, and the one unpacked last has replaced the other
                if hashes[place] != digest:
                    hashes[place] = hashlib.sha256(target.read_bytes()).hexdigest()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(site / name, target)
            hashes[place] = digest
        if not placed:
            raise PartUnavailable(
                f"the wheel {info.name.removesuffix('.dist-info')} contains none of the required files"
            )
    return packages, hashes


def _place(name: str) -> str | None:
    parts = name.split("/")
    if len(parts) < 4 or parts[0] != "nvidia" or parts[2] not in _FOLDERS or parts[-1] == "__init__.py":
        return None
    return "/".join([_FOLDERS[parts[2]], *parts[3:]])


def _complete(home: Path) -> None:
    """Add the names under which compilers and libraries look for the wheels' files."""
    (home / "lib").symlink_to("lib64")
    nvvm = home / "nvvm" / "lib64"
    nvvm.mkdir(parents=True, exist_ok=True)
    # CUDA 13's wheel has libnvvm.so.4 in lib. Older wheels have only the unversioned name. Numba's finder skips it in
    # favour of any libnvvm that the dynamic loader finds.
    for real in ("../../lib64/libnvvm.so.4", "libnvvm.so"):
        if (nvvm / real).is_file():
            for alias in ("libnvvm.so", "libnvvm.so.4"):
                if not (nvvm / alias).exists():
                    (nvvm / alias).symlink_to(real)
            break
    # The linker requires unversioned names (-lcudart), and the wheels have only versioned ones.
    for library in sorted((home / "lib64").glob("lib*.so.*")):
        plain = re.sub(r"\.so\..*", ".so", library.name)
        if ".alt." not in library.name and not (library.parent / plain).exists():
            (library.parent / plain).symlink_to(library.name)


# The folders of a wheel below a toolkit's home; only CCCL is borrowed.
_BORROWED_FOLDERS = {"nvidia-cuda-cccl": ("include/cub", "include/cuda", "include/nv", "include/thrust")}


def borrowed(home: Path) -> dict[str, str]:
    """Return the folders below a toolkit's home with another CUDA release's files, and that release.

    For CUDA 12.0 to 12.2 and 11.7, this is ``{"include/cub": "12.4", …}``. For other releases and for local CUDA
    toolkits, it is empty.
    """
    manifest = home / MANIFEST
    try:
        return dict(_borrowed(manifest, manifest.stat().st_mtime_ns))
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def note(home: Path, read: Iterable[str | Path]) -> str | None:
    """Return a sentence for a cell that read borrowed files, otherwise None.

    Parameters
    ----------
    home : Path
        The toolkit that provides the headers.
    read : iterable
        Paths of the files that the cell read.
    """
    taken = borrowed(home)
    if not taken:
        return None
    root = home.resolve()
    inside = [Path(path).relative_to(root) for path in map(Path, read) if path.is_relative_to(root)]
    used = [folder for folder in taken if any(path.is_relative_to(folder) for path in inside)]
    if not used:
        return None
    release = taken[used[0]]
    return f"{', '.join(used)}: of CUDA {release}, since the wheel of CUDA {root.name}'s own CCCL lacks headers"


@cache
def _borrowed(manifest: Path, _changed: int) -> tuple[tuple[str, str], ...]:
    packages = json.loads(manifest.read_text("utf-8"))
    release = RELEASES.get(packages["release"])
    return tuple(
        (folder, other)
        for wheel, other in (release.borrowed if release else {}).items()
        if packages["packages"].get(wheel) == release.packages[wheel]  # type: ignore[union-attr]
        for folder in _BORROWED_FOLDERS[wheel.rsplit("-cu", 1)[0]]
    )


LayOut = Callable[[Path, Path], tuple[dict[str, str], dict[str, str]]]
Wanted = Callable[[Installed | None], Mapping[str, str]]


def say(text: str) -> None:
    """Print a message for users on stderr."""
    print(no_command(f"cumatrix: {one_line(text, 2000)}"), file=sys.stderr)


class WheelStore:
    """Sets of wheels in a folder, one subfolder per version.

    Parameters
    ----------
    root : Path
        The folder.
    library : str
        Name of the header library; empty for CUDA itself.
    tell : callable
        Receives a sentence before a step that the user should know about; prints it on stderr by default.
    wait : float
        Seconds to wait for another process that installs the same version.
    """

    def __init__(self, root: Path, library: str = "", tell: Callable[[str], None] = say, wait: float = TIMEOUT) -> None:
        self.root = root
        self.library = library
        self.tell = tell
        self.wait = wait

    def find(self, release: str) -> Installed | None:
        """Return the installation of a version, or None."""
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
        """Return every version with a folder; a version without a valid manifest has no packages."""
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
        """Install wheels from PyPI, completely or not at all, unless they are installed.

        Parameters
        ----------
        name : str
            The version to install them under.
        wanted : callable
            Returns exact versions by the full name of the wheel, given the current installation.
        lay_out : callable
            Moves the unpacked files to their places (`harness.toolkits.store`).
        right : callable
            Returns whether versions by name match the requested ones.
        force : bool
            Whether to replace an existing installation.

        Raises
        ------
        PartUnavailable
            If a wheel cannot be downloaded, its hash differs from the pinned one, or its version differs from the
            requested one, or another process takes too long to install the same version.
        """
        what = f"{self.library or 'CUDA'} {name}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {self.root}: {error}; set CUMATRIX_HOME") from None
        sweep_installs(self.root)
        with self._alone(name):
            found = self.find(name)
            requested = wanted(found)
            if found and not force and right(found.packages, requested):
                return found
            with work_folder(self.root, name) as folder:
                home = folder / "home"
                wheels = self._unpack(what, requested, folder)
                packages, hashes = lay_out(folder / "site", home)
                if not right(packages, requested):
                    spelled = " ".join(f"{item}=={version}" for item, version in requested.items())
                    raise PartUnavailable(f"{what}: asked for {spelled}, got {packages}")
                (home / MANIFEST).write_text(json.dumps(_manifest(name, home, packages, wheels, hashes)), "utf-8")
                before = set_aside(self.root, name)
                os.replace(home, self.root / name)
                if before:
                    shutil.rmtree(before)
        installed = self.find(name)
        assert installed is not None
        return installed

    def _unpack(self, what: str, requested: Mapping[str, str], folder: Path) -> list[download.Wheel]:
        wheels = download.choose(what, requested, folder)
        for wheel in wheels:
            if not wheel.known:
                self.tell(
                    f"{what}: the wheel of {wheel.name} {wheel.version} is none that cumatrix knows; "
                    f"it is taken as {wheel.host} has it, with the SHA-256 {wheel.sha256}"
                )
        download.unpack(what, wheels, folder / "site", folder)
        return wheels

    def sweep(self) -> None:
        """Remove the remains of killed installations."""
        sweep_installs(self.root)

    def remove(self, release: str) -> bool:
        """Remove a version; return False if it is not installed."""
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
    """Toolkits in a folder, by default ``$CUMATRIX_HOME/toolkits`` or the user's data folder.

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
        """Install a release from PyPI with `parts` in addition to its installed parts; see `put`."""

        def wanted(found: Installed | None) -> dict[str, str]:
            every = [*parts, *parts_among(found.packages if found else {}, release.name)]
            return {**release.packages, **wheels_of(every, release.name)}

        return self.put(release.name, wanted, lay_out, lambda got, requested: dict(got) == requested, force=force)

    def of(self, ref: ToolkitRef) -> tuple[Installed | None, Installed | None]:
        """Return the toolkits of a compiler and of its headers; None for one that is not installed."""
        if ref.bundled:
            home = self.root.parent / "bundled"
            home.mkdir(parents=True, exist_ok=True)
            tools = BundledTools(release=ref.release, home=home, packages={})
            return tools, tools
        if ref.rocm:
            rocm = rocm_in(Path(ref.home)) if ref.home else None
            return rocm, rocm
        toolkit = local_toolkit(Path(ref.home)) if ref.home else self.find(ref.release)
        return toolkit, toolkit if ref.headers == ref.release else self.find(ref.headers)

    def installed(self) -> list[Installed]:
        """Return every installed toolkit, oldest release first."""
        return [toolkit for name in RELEASES if (toolkit := self.find(name))]


def data_folder() -> Path:
    """Return ``$CUMATRIX_HOME``, or else cumatrix's folder in the user's data folder."""
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
    """Describe the differences between an installation and its wheels, each in a few words.

    Every file is compared with the hash in its wheel. Additional files, and links that lead out of the folder, are
    listed.
    The hash of each wheel is compared with the pinned one.
    """
    return [*_files(installed), *_wheels(installed)]


def not_pinned(installed: Installed) -> list[str]:
    """Return an installation's wheels without a pinned hash: the index provided their hash during the installation."""
    found = installed.packages.items()
    return [f"{name} {version}" for name, version in found if pinned(name, version) is None]


def _wheels(installed: Installed) -> Iterator[str]:
    if not isinstance(installed.wheels, dict) or installed.wheels.keys() != dict(installed.packages).keys():
        yield "the hashes of its wheels are not known: it was installed before they were kept"
        return
    versions = _versions(installed)
    for name, version in installed.packages.items():
        if versions.get(name, version) != version:
            yield f"{MANIFEST} says {name} {version}, where {installed.what} has {versions[name]}"
            continue
        known = pinned(name, version)
        if known is not None and installed.wheels[name] not in known:
            yield f"the wheel of {name} {version} had the SHA-256 {installed.wheels[name]}, and should have {' or '.join(sorted(known))}"


def _versions(installed: Installed) -> dict[str, str]:
    """Return the known versions of the wheels of a CUDA release and its parts."""
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
    """Return the files below a folder without links, and the links that lead out of it or nowhere."""
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
