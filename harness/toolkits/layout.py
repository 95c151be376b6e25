"""From unpacked wheels to a CUDA_HOME as an installer of NVIDIA's would leave it."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from harness.errors import PartUnavailable
from harness.toolkits.releases import MANIFEST, RELEASES

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
    """Move the files of wheels that were unpacked into `site` to their places below `home`.

    Parameters
    ----------
    site, home : Path
        From where, and to where.
    place_of : callable
        Place of a file below `home` by its name in the wheel; None for one that is not needed.

    Returns
    -------
    packages : dict
        Version by name of every wheel, from its own metadata.
    hashes : dict
        SHA-256 (hexadecimal) of every file by its path below `home`, from the wheels' own records.

    Raises
    ------
    PartUnavailable
        When a wheel has nothing that is needed, or names a file outside of itself.
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
            if place in hashes:  # two wheels have it, and the one that was unpacked last has won
                if hashes[place] != digest:
                    hashes[place] = hashlib.sha256(target.read_bytes()).hexdigest()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(site / name, target)
            hashes[place] = digest
        if not placed:
            raise PartUnavailable(
                f"the wheel {info.name.removesuffix('.dist-info')} has none of the files it is taken for"
            )
    return packages, hashes


def _place(name: str) -> str | None:
    parts = name.split("/")
    if len(parts) < 4 or parts[0] != "nvidia" or parts[2] not in _FOLDERS or parts[-1] == "__init__.py":
        return None
    return "/".join([_FOLDERS[parts[2]], *parts[3:]])


def _complete(home: Path) -> None:
    """Add the names under which compilers and libraries look for what the wheels hold."""
    (home / "lib").symlink_to("lib64")
    nvvm = home / "nvvm" / "lib64"
    nvvm.mkdir(parents=True, exist_ok=True)
    # CUDA 13's wheel keeps libnvvm.so.4 in lib; older ones have only the bare name, which Numba's finder passes over
    # in favour of any libnvvm that the dynamic loader knows.
    for real in ("../../lib64/libnvvm.so.4", "libnvvm.so"):
        if (nvvm / real).is_file():
            for alias in ("libnvvm.so", "libnvvm.so.4"):
                if not (nvvm / alias).exists():
                    (nvvm / alias).symlink_to(real)
            break
    # The linker wants unversioned names (-lcudart); the wheels have only the versioned ones.
    for library in sorted((home / "lib64").glob("lib*.so.*")):
        plain = re.sub(r"\.so\..*", ".so", library.name)
        if ".alt." not in library.name and not (library.parent / plain).exists():
            (library.parent / plain).symlink_to(library.name)


# The folders of a wheel below a toolkit's home; only CCCL is ever borrowed.
_BORROWED_FOLDERS = {"nvidia-cuda-cccl": ("include/cub", "include/cuda", "include/nv", "include/thrust")}


def borrowed(home: Path) -> dict[str, str]:
    """Folders below a toolkit's home whose files are another CUDA release's, and that release.

    ``{"include/cub": "12.4", …}`` for CUDA 12.0 to 12.2 and 11.7; empty for every other one, and for a CUDA of the machine's own.
    """
    manifest = home / MANIFEST
    try:
        return dict(_borrowed(manifest, manifest.stat().st_mtime_ns))
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def note(home: Path, read: Iterable[str | Path]) -> str | None:
    """One sentence for a cell that read borrowed files, or None for one that did not.

    Parameters
    ----------
    home : Path
        The toolkit that the headers come from.
    read : iterable
        Paths of the files that were read while the cell came about.
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
