"""An installed CUDA release or header library."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.errors import PartUnavailable

MANIFEST = "cumatrix-toolkit.json"
"""The file in an installed folder that lists every other file with its hash."""


@dataclass(frozen=True)
class Installed:
    """A CUDA release or a header library, laid out from wheels.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    home : Path
        Its folder; a toolkit's folder is a CUDA_HOME with bin, include, lib64 and nvvm.
    packages : Mapping[str, str]
        Versions of its wheels, from their metadata.
    library : str
        Name of the header library; empty for CUDA itself.
    wheels : Mapping[str, str]
        SHA-256 of each wheel by name; empty if an earlier version of cumatrix installed them.
    """

    release: str
    home: Path
    packages: Mapping[str, str]
    library: str = ""
    wheels: Mapping[str, str] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """Its name in messages: ``CUDA 12.4``, ``cutlass 3.5.1``."""
        return f"{self.library or 'CUDA'} {self.release}"

    @property
    def spelled(self) -> str:
        """Its name on the command line: ``12.4``, ``cutlass==3.5.1``."""
        return f"{self.library}=={self.release}" if self.library else self.release

    @property
    def include(self) -> list[Path]:
        """Its include directories; CUDA 13 has a separate directory for CCCL."""
        folders = [self.home / "include", self.home / "include" / "cccl"]
        return [folder for folder in folders if folder.is_dir()]

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the content of every file; a file that has changed since the installation is read again.

        Raises
        ------
        PartUnavailable
            If a file is missing.
        """
        manifest = json.loads((self.home / MANIFEST).read_text("utf-8"))
        digest = hashlib.sha256(self.release.encode())
        for name, (recorded, size, mtime_ns) in sorted(manifest["files"].items()):
            path = f"{self.home}/{name}"  # there are thousands: building a Path takes longer than stat
            try:
                stat = os.stat(path)
            except OSError as error:
                raise PartUnavailable(
                    f"{self.what} is damaged ({error}): run `cumatrix toolkits install --force {self.spelled}`"
                ) from None
            same = (stat.st_size, stat.st_mtime_ns) == (size, mtime_ns)
            sha256 = recorded if same else hashlib.sha256(Path(path).read_bytes()).hexdigest()
            digest.update(f"\0{name}\0{sha256}".encode())
        return digest.hexdigest()
