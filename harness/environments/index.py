"""A distribution's files on the index: every wheel with its upload date, size and Python versions.

Supported are the Simple API (https://packaging.python.org/en/latest/specifications/simple-repository-api/), as JSON if the index offers it
and otherwise as HTML, and folders of wheels (``find-links``). uv's and pip's settings select the index (`harness.toolkits.download`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from packaging.tags import Tag, sys_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from harness.errors import PartUnavailable
from harness.toolkits.download import index_addresses, index_settings
from harness.web.address import AddressError, public, read_address

FRESH = 600
"""Seconds for which a response of an index is reused; PyPI sets the same limit for caches."""
_SECONDS = 60.0  # for one response, redirects included
_JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{_JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_LARGEST = 32 << 20
_KEPT = 2  # version of stored responses: those of version 1 have no addresses


@dataclass(frozen=True)
class File:
    """A file on an index.

    Parameters
    ----------
    name : str
        File name, such as ``cupy_cuda12x-13.6.0-cp311-cp311-manylinux2014_x86_64.whl``.
    size : int
        Size in bytes; 0 if the index does not provide it.
    uploaded : str
        Upload time in ISO 8601; empty if the index does not provide it.
    requires_python : str
        Supported versions of Python; empty for any.
    yanked : bool
        Whether the file was yanked.
    address : str
        Its location without credentials: an HTTP address or a path.
    sha256 : str
        Its hash in hexadecimal digits; empty if the index does not provide it.
    """

    name: str
    size: int = 0
    uploaded: str = ""
    requires_python: str = ""
    yanked: bool = False
    address: str = ""
    sha256: str = ""

    @property
    def date(self) -> datetime | None:
        """The upload time; None if unknown."""
        try:
            return datetime.fromisoformat(self.uploaded) if self.uploaded else None
        except ValueError:
            return None


class Index:
    """The user's index, with its responses stored in a folder.

    Parameters
    ----------
    folder : Path
        The folder for stored responses.
    offline : bool
        Use stored responses, however old, and no network.
    """

    def __init__(self, folder: Path, *, offline: bool = False) -> None:
        self.folder = folder
        self.offline = offline
        self._pages: dict[str, list[File]] = {}

    def files(self, distribution: str) -> list[File]:
        """Return every file of a distribution, given by normalized name; empty if no index has the distribution.

        Raises
        ------
        PartUnavailable
            If an index is unreachable or responds with something else, and no response is stored.
        """
        if distribution not in self._pages:
            indexes, folders = index_addresses()
            found: dict[str, File] = {}
            pages = [f"{address.rstrip('/')}/{distribution}/" for address in indexes]
            for file in chain(*map(self._page, pages), *map(self._flat, folders)):
                # If two indexes have the same file, one may provide more metadata.
                if file.name not in found or (file.uploaded and not found[file.name].uploaded):
                    found[file.name] = file
            stem = distribution.replace("-", "_") + "-"
            self._pages[distribution] = [
                file
                for file in found.values()
                if re.sub(r"[-_.]+", "_", file.name.partition("-")[0]).lower() + "-" == stem
            ]
        return self._pages[distribution]

    def has(self, distribution: str, version: str) -> bool:
        """Return whether the index has a wheel of a version for any machine; True if the index is unreachable."""
        try:
            files = self.files(canonicalize_name(distribution))
        except PartUnavailable:
            return True
        return any(_is_for(file.name, version, None) for file in files)

    def size(self, packages: Mapping[str, str], wheels: Mapping[str, Sequence[str]] | None = None) -> int:
        """Return the total size in bytes of the wheels of some exact versions.

        Wheels of unknown size, and those on an unreachable index, count as 0.

        Parameters
        ----------
        packages : Mapping[str, str]
            Versions by name.
        wheels : Mapping, optional
            Candidate wheels of some names. By default, the candidates are the wheels for this machine's own Python.
        """
        return sum(self._size(name, version, (wheels or {}).get(name)) for name, version in packages.items())

    def _size(self, name: str, version: str, wheels: Sequence[str] | None) -> int:
        try:
            files = self.files(canonicalize_name(name))
        except PartUnavailable:
            return 0
        if wheels is None:
            mine = set(sys_tags())
            wheels = [file.name for file in files if _is_for(file.name, version, mine)]
        return max((file.size for file in files if file.name in wheels), default=0)

    def _page(self, address: str) -> list[File]:
        kept = self.folder / f"{hashlib.sha256(f'{_KEPT} {address}'.encode()).hexdigest()[:24]}.json"
        if address.startswith("file:"):
            return _read(address, *_fetch(address))
        try:
            if self.offline or time.time() - kept.stat().st_mtime < FRESH:
                return _kept(kept)
        except (OSError, ValueError, TypeError):
            pass
        if self.offline:
            return []
        try:
            files = _read(address, *_fetch(address))
        except PartUnavailable:
            try:
                return _kept(kept)
            except (OSError, ValueError, TypeError):
                pass
            raise
        self._keep(kept, files)
        return files

    def _flat(self, address: str) -> list[File]:
        """Return the files of a folder of wheels, or of a page that lists wheels."""
        if "://" not in address:
            try:
                return [
                    File(entry.name, entry.stat().st_size, address=entry.path)
                    for entry in os.scandir(address)
                    if entry.is_file()
                ]
            except OSError:
                return []
        return self._page(address)

    def _keep(self, path: Path, files: list[File]) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as file:
                json.dump([asdict(each) for each in files], file)
            os.replace(file.name, path)
        except OSError:
            pass  # the index is queried again


def _is_for(name: str, version: str, tags: AbstractSet[Tag] | None) -> bool:
    try:
        _, of, _, fits = parse_wheel_filename(name)
        return of == Version(version) and (tags is None or bool(fits & tags))
    except (InvalidWheelFilename, InvalidVersion):
        return False


def _kept(path: Path) -> list[File]:
    return [File(**item) for item in json.loads(path.read_text("utf-8"))]


def _fetch(address: str) -> tuple[str, bytes]:
    """Return the type and content of a page; both are empty if the page does not exist.

    Raises
    ------
    PartUnavailable
        If the index does not respond.
    """
    # Every run imports this module, but few runs query an index.
    from harness.web.download import DownloadError, download

    if address.startswith("file:"):
        path = Path(unquote(urlsplit(address).path)) / "index.html"
        try:
            return "text/html", path.read_bytes()
        except OSError:
            return "", b""
    shown, text = public(address), io.BytesIO()
    try:
        response = download(
            read_address(address), text, largest=_LARGEST, seconds=_SECONDS, headers={"Accept": _ACCEPT},
            certificates=index_settings()[0].get("SSL_CERT_FILE"),
        )  # fmt: skip
    except AddressError as error:
        raise PartUnavailable(f"{shown} is no address of an index: {error}") from None
    except DownloadError as error:
        raise PartUnavailable(f"{shown} cannot be queried for releases: {error}") from None
    if response.status in (403, 404, 410):
        return "", b""
    if response.status != 200:
        raise PartUnavailable(f"{shown} cannot be queried: {response.reason}")
    return response.content_type, text.getvalue()


def _read(address: str, kind: str, text: bytes) -> list[File]:
    if not text:
        return []
    try:
        return list(
            _from_json(json.loads(text), address)
            if kind.endswith("json")
            else _from_html(text.decode("utf-8", "replace"), address)
        )
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, AssertionError, RecursionError):
        raise PartUnavailable(f"{public(address)} returned something other than a page of a package index") from None


def _from_json(page: Mapping[str, Any], address: str) -> Iterator[File]:
    for item in page["files"]:
        hashes = item.get("hashes") or {}
        yield File(
            name=str(item["filename"]),
            size=int(item.get("size") or 0),
            uploaded=str(item.get("upload-time") or ""),
            requires_python=str(item.get("requires-python") or ""),
            yanked=bool(item.get("yanked")),
            address=_bare(urljoin(address, str(item["url"]))) if item.get("url") else "",
            sha256=_sha256(str(hashes.get("sha256") or "")),
        )


def _from_html(text: str, address: str) -> Iterator[File]:
    from html.parser import HTMLParser  # imported here for the same reason

    found: list[dict[str, str | None]] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "a":
                found.append(dict(attrs))

    Links().feed(text)
    for link in found:
        whole = urljoin(address, link.get("href") or "")
        path, fragment = urlsplit(whole).path, urlsplit(whole).fragment
        if name := unquote(path.rsplit("/", 1)[-1]):
            yield File(
                name,
                uploaded=link.get("data-upload-time") or "",  # provided by mirrors of PyPI
                requires_python=link.get("data-requires-python") or "",
                yanked="data-yanked" in link,
                address=_bare(whole),
                sha256=_sha256(fragment.removeprefix("sha256=")),
            )


def _bare(address: str) -> str:
    """Return an address without user name, password and fragment, because it is stored in a file."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def _sha256(text: str) -> str:
    """Return a valid SHA-256 in lower case, otherwise an empty text."""
    return text.lower() if re.fullmatch(r"[0-9A-Fa-f]{64}", text) else ""
