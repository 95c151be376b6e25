"""Folders of what was installed from wheels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import platformdirs
import uv
from filelock import FileLock

from harness.errors import PartUnavailable, UsageError
from harness.held import HeldFolder, sweep
from harness.model import ToolkitRef
from harness.toolkits.installed import MANIFEST, Installed
from harness.toolkits.layout import lay_out
from harness.toolkits.local import local_toolkit
from harness.toolkits.parts import parts_among, wheels_of
from harness.toolkits.releases import RELEASES, Release

_INSTALL_TIMEOUT = 1800
_NEW = ".new-"
# uv ends with the thread that waits for it (prctl(2), PR_SET_PDEATHSIG): a killed installation must not go on.
_WITH_ME = """import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


LayOut = Callable[[Path, Path], tuple[dict[str, str], dict[str, str]]]


class WheelStore:
    """Sets of wheels in a folder, each laid out under its version.

    Parameters
    ----------
    root : Path
        The folder.
    library : str
        Name of the header library that the versions are of; empty for CUDA itself.
    """

    def __init__(self, root: Path, library: str = "") -> None:
        self.root = root
        self.library = library

    def find(self, release: str) -> Installed | None:
        """What is installed under a version, or None."""
        home = self.root / release
        try:
            manifest = json.loads((home / MANIFEST).read_text("utf-8"))
            return Installed(
                release=manifest["release"], home=home.resolve(), packages=manifest["packages"], library=self.library
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(
        self,
        name: str,
        requirements: Sequence[str],
        lay_out: LayOut,
        right: Callable[[Mapping[str, str]], bool],
        *,
        force: bool = False,
    ) -> Installed:
        """Install wheels from PyPI unless they are there; complete or not at all.

        Parameters
        ----------
        name : str
            The version to keep them under.
        requirements : sequence of str
            The wheels, exactly.
        lay_out : callable
            Moves what was unpacked to its place (`harness.toolkits.layout`).
        right : callable
            Whether versions by name are those that were asked for.
        force : bool
            Install again what is there.

        Raises
        ------
        PartUnavailable
            When a wheel cannot be had, or another version came than was asked for.
        """
        noun = self.library or "CUDA"
        self._make_root()
        with FileLock(self.root / f".{name}.lock"):
            found = self.find(name)
            if found and not force and right(found.packages):
                return found
            self.sweep()
            with HeldFolder(self.root, _NEW) as folder:
                site, home = folder / "site", folder / "home"
                _download(f"{noun} {name}", requirements, site)
                packages, hashes = lay_out(site, home)
                if not right(packages):
                    raise PartUnavailable(f"{noun} {name}: asked for {' '.join(requirements)}, got {packages}")
                files = {}
                for path, sha256 in hashes.items():
                    stat = (home / path).stat()
                    files[path] = (sha256, stat.st_size, stat.st_mtime_ns)
                manifest = {"release": name, "packages": packages, "files": files}
                (home / MANIFEST).write_text(json.dumps(manifest), "utf-8")
                self.remove(name)
                os.replace(home, self.root / name)
        installed = self.find(name)
        assert installed is not None
        return installed

    def _make_root(self) -> None:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder {self.root}: {error}; set CUMATRIX_HOME") from None

    def remove(self, release: str) -> bool:
        """Remove a version; False where there was none."""
        home = self.root / release
        if not home.is_dir():
            return False
        with HeldFolder(self.root, _NEW) as doomed:
            os.replace(home, doomed / "home")
        return True

    def sweep(self) -> None:
        """Remove what installations have left that were killed."""
        sweep(self.root, _NEW)


class ToolkitStore(WheelStore):
    """Toolkits in a folder: ``$CUMATRIX_HOME/toolkits``, or the user's data folder.

    Parameters
    ----------
    root : Path, optional
        Another folder.
    """

    def __init__(self, root: Path | None = None) -> None:
        super().__init__(root or data_folder() / "toolkits")

    def install(self, release: Release, parts: Sequence[str] = (), *, force: bool = False) -> Installed:
        """Install a release from PyPI, with `parts` and with those that it has already, unless it is there: see `put`."""
        self._make_root()
        with FileLock(self.root / f".{release.name}.parts.lock"):  # or two that add parts would lose one
            found = self.find(release.name)
            parts = [*parts, *parts_among(found.packages if found else {}, release.name)]
            wanted = {**release.packages, **wheels_of(parts, release.name)}
            requirements = [f"{name}=={version}" for name, version in wanted.items()]
            return self.put(release.name, requirements, lay_out, lambda got: dict(got) == wanted, force=force)

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
    return Path(home).expanduser().absolute() if home else platformdirs.user_data_path("cumatrix")


def _download(what: str, requirements: Sequence[str], site: Path) -> None:
    argv = [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    # A copy, so that a file changed in a toolkit stays out of uv's cache and of other toolkits.
    argv += ["--link-mode", "copy"]
    argv += ["--python", sys.executable, "--target", str(site), *requirements]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _WITH_ME, str(os.getpid()), *argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_INSTALL_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise PartUnavailable(f"{what}: no answer from PyPI within {_INSTALL_TIMEOUT} s") from None
    if done.returncode:
        words = " ".join(done.stderr.split())[-600:]
        raise PartUnavailable(f"{what} cannot be installed from PyPI: {words}")
