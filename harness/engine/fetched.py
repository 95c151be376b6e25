"""Results that lie at an address: downloaded with limits of size and time."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.environments.index import credentials
from harness.errors import PartUnavailable, UsageError
from harness.records.inputs import inputs_path
from harness.toolkits.index import index_settings

_LARGEST = 512 << 20  # bytes
_SECONDS = 300.0
_SILENCE = 30.0  # seconds without a byte
_PIECE = 1 << 20


def is_address(place: str) -> bool:
    """Whether this names results by address, and not by file."""
    return "://" in place


def fetch(address: str, folder: Path, largest: int = _LARGEST, seconds: float = _SECONDS) -> Path:
    """Download results, and return the file.

    Parameters
    ----------
    address : str
        Of ``results.parquet``, of a ``.jsonl``, or of a published page, beside which the former lies.
    folder : Path
        Where to put it.
    largest : int
        Bytes that it may have.
    seconds : float
        How long it may take.

    Raises
    ------
    UsageError
        When it is no address of the web.
    PartUnavailable
        When nothing can be had from there within the limits.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"--from {shown(address)}: an address begins with https:// or http://")
    if not parts.path.endswith((".parquet", ".jsonl")):
        parts = parts._replace(path=f"{parts.path.removesuffix('/index.html').rstrip('/')}/results.parquet")
    path = folder / parts.path.rpartition("/")[2]
    deadline = time.monotonic() + seconds
    if not _download(urlunsplit(parts), path, largest, deadline):
        raise PartUnavailable(f"--from {shown(urlunsplit(parts))}: there is no such page")
    if path.suffix == ".jsonl":
        beside = inputs_path(Path(parts.path))
        _download(urlunsplit(parts._replace(path=str(beside))), inputs_path(path), largest, deadline)
    return path


def shown(address: str) -> str:
    """The address without a name and password in it, and without what stands behind its path."""
    return urlunsplit(urlsplit(credentials(address)[0])._replace(query="", fragment=""))


def _download(address: str, path: Path, largest: int, deadline: float) -> bool:
    """Whether there was something."""
    # The web is loaded where it is asked: every run loads this module, and few ask.
    import ssl
    import urllib.error
    import urllib.request

    bare, headers = credentials(address)
    begin = f"--from {shown(address)}"
    request = urllib.request.Request(bare, headers={"User-Agent": "cumatrix", **headers})  # noqa: S310 (looked at above)
    try:
        context = ssl.create_default_context(cafile=index_settings()[0].get("SSL_CERT_FILE"))
        with (
            urllib.request.urlopen(request, timeout=_SILENCE, context=context) as answer,  # noqa: S310
            open(path, "wb") as file,
        ):
            while data := answer.read1(_PIECE):
                file.write(data)
                if file.tell() > largest:
                    raise PartUnavailable(f"{begin}: it has more than {largest >> 20} MiB, and is not taken")
                if time.monotonic() > deadline:
                    raise PartUnavailable(f"{begin}: it did not come within the time limit, and is not taken")
            wanted = answer.headers.get("Content-Length", "")
            if wanted.isdigit() and int(wanted) != file.tell():
                raise PartUnavailable(f"{begin}: the connection ended before all of it had come")
        return True
    except urllib.error.HTTPError as error:
        if error.code in (404, 410):
            return False
        raise PartUnavailable(f"{begin}: cannot be had: {error.code} {error.reason}") from None
    except (OSError, ValueError) as error:
        raise PartUnavailable(f"{begin}: cannot be had: {getattr(error, 'reason', error)}") from None
