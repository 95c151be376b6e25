"""An index of packages that is a folder, with wheels made here."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
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

    def add(self, name: str, version: str, files: Mapping[str, str], *, told: str | None = "",
            metadata: bool = False, more: bool = False, requires: Sequence[str] = (), attributes: str = "") -> str:  # fmt: skip
        """Make a wheel and list it.

        Parameters
        ----------
        name, version : str
            Of the wheel.
        files : Mapping[str, str]
            Text by name; RECORD is as these files have it.
        told : str or None
            The SHA-256 that the index says it has, by default its own; None for an index that says nothing.
        metadata : bool
            Whether the index has the wheel's metadata beside it (PEP 658), so that nobody has to download it to know what it requires.
        more : bool
            List it beside what is listed already, and not in its place.
        requires : sequence of str
            What it requires.
        attributes : str
            Further attributes of its link.

        Returns
        -------
        str
            The SHA-256 that it has.
        """
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"{name.replace('-', '_')}-{version}"
        info = {
            f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            + "".join(f"Requires-Dist: {text}\n" for text in requires),
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
        if metadata:
            (folder / f"{wheel.name}.metadata").write_text(info[f"{stem}.dist-info/METADATA"])
            attributes += ' data-core-metadata="true" data-dist-info-metadata="true"'
        with (folder / "index.html").open("a" if more else "w") as page:
            page.write(f'<a href="{wheel.name}{fragment}" {attributes}>{wheel.name}</a>\n')
        return sha256
