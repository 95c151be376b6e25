"""The folder of installed toolkits."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import platformdirs
import uv
from filelock import FileLock

from harness.errors import PartUnavailable, UsageError
from harness.toolkits.layout import lay_out
from harness.toolkits.releases import RELEASES, Release

_MANIFEST = "cumatrix-toolkit.json"
_INSTALL_TIMEOUT = 1800


@dataclass(frozen=True)
class Toolkit:
    """An installed toolkit.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    home : Path
        Its CUDA_HOME: bin, include, lib64, nvvm. Every file is a real one, none a link to elsewhere.
    packages : Mapping[str, str]
        Versions of the wheels that it was laid out from, as their metadata say.
    """

    release: str
    home: Path
    packages: Mapping[str, str]

    @property
    def include(self) -> list[Path]:
        """Include directories; CUDA 13 keeps CCCL in a folder of its own."""
        folders = [self.home / "include", self.home / "include" / "cccl"]
        return [folder for folder in folders if folder.is_dir()]

    @cached_property
    def fingerprint(self) -> str:
        """Hash over the content of every file; a file that changed since the installation is read again."""
        manifest = json.loads((self.home / _MANIFEST).read_text("utf-8"))
        digest = hashlib.sha256(self.release.encode())
        for name, (sha256, size, mtime_ns) in sorted(manifest["files"].items()):
            path = self.home / name
            try:
                stat = path.stat()
            except OSError as error:
                raise PartUnavailable(
                    f"toolkit {self.release} is damaged ({error}): run `cumatrix toolkits install --force {self.release}`"
                ) from None
            if (stat.st_size, stat.st_mtime_ns) != (size, mtime_ns):
                sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"\0{name}\0{sha256}".encode())
        return digest.hexdigest()


class ToolkitStore:
    """Toolkits in a folder: ``$CUMATRIX_HOME/toolkits``, or the user's data folder.

    Parameters
    ----------
    root : Path, optional
        Another folder.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or data_folder() / "toolkits"

    def find(self, release: str) -> Toolkit | None:
        """The toolkit of a release, or None where it is not installed."""
        home = self.root / release
        try:
            manifest = json.loads((home / _MANIFEST).read_text("utf-8"))
            return Toolkit(release=manifest["release"], home=home.resolve(), packages=manifest["packages"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def install(self, release: Release, *, force: bool = False) -> Toolkit:
        """Install a release from PyPI unless it is there; complete or not at all.

        Raises
        ------
        PartUnavailable
            When a wheel cannot be had, or another version came than was asked for.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot make the folder of toolkits: {error}; set CUMATRIX_HOME") from None
        with FileLock(self.root / f".{release.name}.lock"):
            found = self.find(release.name)
            if found and not force and dict(found.packages) == dict(release.packages):
                return found
            with tempfile.TemporaryDirectory(dir=self.root, prefix=f".{release.name}-") as folder:
                site, home = Path(folder, "site"), Path(folder, "home")
                _download(release, site)
                packages, hashes = lay_out(site, home)
                if packages != dict(release.packages):
                    raise PartUnavailable(f"CUDA {release.name}: asked for {dict(release.packages)}, got {packages}")
                files = {}
                for name, sha256 in hashes.items():
                    stat = (home / name).stat()
                    files[name] = (sha256, stat.st_size, stat.st_mtime_ns)
                manifest = {"release": release.name, "packages": packages, "files": files}
                (home / _MANIFEST).write_text(json.dumps(manifest), "utf-8")
                self.remove(release.name)
                os.replace(home, self.root / release.name)
        toolkit = self.find(release.name)
        assert toolkit is not None
        return toolkit

    def remove(self, release: str) -> bool:
        """Remove a toolkit; False where there was none."""
        home = self.root / release
        if not home.is_dir():
            return False
        doomed = Path(tempfile.mkdtemp(dir=self.root, prefix=f".{release}-old-"))
        os.replace(home, doomed / "home")
        shutil.rmtree(doomed)
        return True

    def installed(self) -> list[Toolkit]:
        """Every toolkit that is there, oldest release first."""
        return [toolkit for name in RELEASES if (toolkit := self.find(name))]


def data_folder() -> Path:
    """``$CUMATRIX_HOME``, or the user's data folder for cumatrix."""
    home = os.environ.get("CUMATRIX_HOME")
    return Path(home).expanduser().absolute() if home else platformdirs.user_data_path("cumatrix")


def _download(release: Release, site: Path) -> None:
    argv = [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    # A copy, so that a file changed in a toolkit stays out of uv's cache and of other toolkits.
    argv += ["--link-mode", "copy"]
    argv += ["--python", sys.executable, "--target", str(site), *release.requirements]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=_INSTALL_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise PartUnavailable(f"CUDA {release.name}: no answer from PyPI within {_INSTALL_TIMEOUT} s") from None
    if done.returncode:
        words = " ".join(done.stderr.split())[-600:]
        raise PartUnavailable(f"CUDA {release.name} cannot be installed from PyPI: {words}")
