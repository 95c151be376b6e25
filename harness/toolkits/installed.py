"""An installed CUDA release or header library, in a folder."""

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
"""File in an installed folder that lists every other one with its hash."""


@dataclass(frozen=True)
class Installed:
    """A CUDA release or a header library, laid out from wheels.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    home : Path
        Its folder; for a toolkit a CUDA_HOME: bin, include, lib64, nvvm.
    packages : Mapping[str, str]
        Versions of the wheels that it was laid out from, as their metadata say.
    library : str
        Name of the header library; empty for CUDA itself.
    wheels : Mapping[str, str]
        SHA-256 of each wheel, by its name; empty for what an earlier version of cumatrix has installed.
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
        """Include directories; CUDA 13 keeps CCCL in a folder of its own."""
        folders = [self.home / "include", self.home / "include" / "cccl"]
        return [folder for folder in folders if folder.is_dir()]

    @cached_property
    def fingerprint(self) -> str:
        """Hash over the content of every file; a file that changed since the installation is read again.

        Raises
        ------
        PartUnavailable
            When a file is gone.
        """
        manifest = json.loads((self.home / MANIFEST).read_text("utf-8"))
        digest = hashlib.sha256(self.release.encode())
        for name, (recorded, size, mtime_ns) in sorted(manifest["files"].items()):
            path = f"{self.home}/{name}"  # there are thousands: a Path for each takes longer than to look at it
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
