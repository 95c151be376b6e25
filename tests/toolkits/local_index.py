"""A package index in a folder, with generated wheels."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HEADER = "cutlass_library/source/include/cutlass/version.h"
"""The file that marks a wheel as CUTLASS."""


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
            Name and version of the wheel.
        files : Mapping[str, str]
            Texts of the files by name; RECORD follows from them.
        told : str or None
            The SHA-256 that the index lists, by default the wheel's own; None for an index without hashes.
        metadata : bool
            Whether the index has the wheel's metadata as a separate file (PEP 658), which saves downloading the wheel for its requirements.
        more : bool
            Whether to add the wheel to the list instead of replacing the list.
        requires : sequence of str
            Requirements of the wheel.
        attributes : str
            Further attributes of the link.

        Returns
        -------
        str
            The SHA-256 of the wheel.
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
