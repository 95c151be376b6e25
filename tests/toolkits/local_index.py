"""An index of packages that is a folder, with wheels made here."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

HEADER = "cutlass_library/source/include/cutlass/version.h"
"""A file by which a wheel is taken for CUTLASS."""


class LocalIndex:
    """A folder that serves as an index (https://peps.python.org/pep-0503/), by its address or over HTTP.

    Parameters
    ----------
    root : Path
        An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = root.as_uri()

    def add(self, name: str, version: str, files: Mapping[str, str], *, told: str | None = "") -> str:
        """Make a wheel and list it.

        Parameters
        ----------
        name, version : str
            Of the wheel.
        files : Mapping[str, str]
            Text by name; RECORD is as these files have it.
        told : str or None
            The SHA-256 that the index says it has, by default its own; None for an index that says nothing.

        Returns
        -------
        str
            The SHA-256 that it has.
        """
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{name.replace('-', '_')}-{version}"
        info = {
            f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = ""
        wheel = folder / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in {**files, **info}.items():
                digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
                record += f"{path},sha256={digest},{len(text)}\n"
                archive.writestr(path, text)
            archive.writestr(f"{stem}.dist-info/RECORD", f"{record}{stem}.dist-info/RECORD,,\n")
        sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
        fragment = "" if told is None else f"#sha256={told or sha256}"
        (folder / "index.html").write_text(f'<a href="{wheel.name}{fragment}">{wheel.name}</a>\n')
        return sha256
