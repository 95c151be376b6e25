"""CUDA toolkits that are on the machine already: ``CUDA_HOME``, the nvcc on the path, ``/usr/local/cuda*``."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.errors import PartUnavailable, UsageError
from harness.protocol import printed
from harness.toolkits.installed import Installed

_LIBRARIES = ("libnvrtc*", "libnvvm*", "libnvJitLink*", "libcudart*", "libcudadevrt*")


@dataclass(frozen=True)
class LocalToolkit(Installed):
    """A CUDA toolkit that somebody else installed."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash over name, size and time of change of every file that compiling may read.

        Not over their content: these are gigabytes, and no list of hashes comes with them.
        """
        digest = hashlib.sha256(f"{self.release}\0{self.home}".encode())
        for path in sorted(self._files()):
            stat = path.stat()
            digest.update(f"\0{path}\0{stat.st_size}\0{stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        for folder in ("bin", "nvvm", "include"):
            yield from (path for path in (self.home / folder).rglob("*") if path.is_file())
        for pattern in _LIBRARIES:
            yield from (path for path in (self.home / "lib64").glob(pattern) if path.is_file())


def local_toolkit(home: Path) -> LocalToolkit:
    """The toolkit in a folder, with the release that its ptxas tells.

    Raises
    ------
    UsageError
        When there is none.
    PartUnavailable
        When it cannot be asked.
    """
    home = home.resolve()
    tool = home / "bin" / "ptxas"
    if not tool.is_file() or not (home / "include" / "cuda_runtime.h").is_file():
        raise UsageError(f"{home} is no CUDA toolkit: it has no bin/ptxas or no include/cuda_runtime.h")
    try:
        said = printed.run([str(tool), "--version"], seconds=60, errors=printed.Errors.DROPPED).said
    except (OSError, subprocess.SubprocessError) as error:
        raise PartUnavailable(f"cannot run {tool}: {error}") from None
    found = re.search(r"release (\d+\.\d+)", said)
    if not found:
        raise PartUnavailable(f"{tool} does not say its release")
    return LocalToolkit(release=found[1], home=home, packages={})


def find_local() -> dict[str, Path]:
    """CUDA toolkits of this machine by release; of two with the same release the first found counts.

    In the order of ``CUDA_HOME``, ``CUDA_PATH``, the nvcc on the path, ``/usr/local/cuda``, ``/usr/local/cuda-*``.
    """
    nvcc = shutil.which("nvcc")
    places = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    places += [str(Path(nvcc).resolve().parent.parent)] if nvcc else []
    places += ["/usr/local/cuda", *map(str, sorted(Path("/usr/local").glob("cuda-*"), reverse=True))]
    found: dict[str, Path] = {}
    for place in filter(None, places):
        try:
            toolkit = local_toolkit(Path(place))
        except (UsageError, PartUnavailable):
            continue  # /usr/local/cuda-12 may be a folder of samples
        found.setdefault(toolkit.release, toolkit.home)
    return found
