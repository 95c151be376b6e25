"""Environments that a pair can change: copies of the shared ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import uv

from harness.process_locks import lock_exclusively, lock_file
from harness.toolkits.store import data_folder

_VERSION = "0.15.0"


@dataclass(frozen=True)
class Own:
    """An environment that belongs to one pair.

    Parameters
    ----------
    python : str
        The interpreter.
    site : Path
        The folder ``site-packages``.
    source : Path
        Folder of the library's files, if they are not in `site`.
    """

    python: str
    site: Path
    source: Path


def make_own(kind: str, shared: str, folder: Path) -> Own:
    """Copy a shared environment, or only its library into a separate folder."""
    _uv("venv", "--quiet", "--python", os.path.realpath(shared or "/proc/self/exe"), str(folder))
    (site,) = folder.glob("lib/python3*/site-packages")
    python, source = folder / "bin" / "python", folder / "source"
    if shared:
        (there,) = Path(shared).parents[1].glob("lib/python3*/site-packages")
        from .site import copy_tree

        copy_tree(there, site, link_above=1 << 20)
    if kind == "editable":
        _sdist(source)
        _uv("pip", "uninstall", "--quiet", "--python", str(python), "numba-cuda")
        _uv("pip", "install", "--quiet", "--no-deps", "--python", str(python), "-e", str(source))
    elif kind == "pth":
        source.mkdir()
        for name in [path for path in site.iterdir() if path.name.startswith("cupy")]:
            os.rename(name, source / name.name)
        (site / "development.pth").write_text(f"{source}\n")
    return Own(str(python), site, source)


def _sdist(folder: Path) -> None:
    """Fetch numba-cuda's own sources."""
    kept = data_folder() / "test-envs" / "sdists"
    kept.mkdir(parents=True, exist_ok=True)
    with lock_file(kept / ".lock") as lock:
        assert lock_exclusively(lock, 1200)
        if not any(kept.glob(f"numba_cuda-{_VERSION}.tar.gz")):
            argv = ["--no-deps", "--no-binary", "numba-cuda", "-d", str(kept), f"numba-cuda=={_VERSION}"]
            _uv("tool", "run", "--from", "pip", "pip", "download", *argv)
    with tarfile.open(kept / f"numba_cuda-{_VERSION}.tar.gz") as archive:
        archive.extractall(folder.with_suffix(".tmp"))
    shutil.move(folder.with_suffix(".tmp") / f"numba_cuda-{_VERSION}", folder)


def _uv(*arguments: str) -> None:
    environ = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run([uv.find_uv_bin(), *arguments], capture_output=True, text=True, env=environ, timeout=600)
    assert done.returncode == 0, f"uv {' '.join(arguments)}: {done.stderr}"
