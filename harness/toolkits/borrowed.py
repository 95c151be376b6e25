"""Headers in a toolkit that come from another CUDA release, since PyPI's wheels of its own lack them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from harness.toolkits.installed import MANIFEST
from harness.toolkits.releases import RELEASES

# Where the files of a wheel lie below a toolkit's home; only CCCL is ever borrowed.
_FOLDERS = {"nvidia-cuda-cccl": ("include/cub", "include/cuda", "include/nv", "include/thrust")}


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
        for folder in _FOLDERS[wheel.rsplit("-cu", 1)[0]]
    )
