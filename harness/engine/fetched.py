"""Results at an address: downloaded with limits of size and time."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from harness.errors import PartUnavailable, UsageError
from harness.records.inputs import inputs_path
from harness.toolkits.index import index_settings
from harness.web.address import AddressError, public, read_address

_LARGEST = 512 << 20  # bytes
_SECONDS = 300.0


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
    try:
        read_address(address)
    except AddressError as error:
        raise UsageError(f"--from {public(address)}: {error}") from None
    parts = urlsplit(address)
    if not parts.path.endswith((".parquet", ".jsonl")):
        parts = parts._replace(path=f"{parts.path.removesuffix('/index.html').rstrip('/')}/results.parquet")
    path = folder / parts.path.rpartition("/")[2]
    deadline = time.monotonic() + seconds
    if not _download(urlunsplit(parts), path, largest, deadline):
        raise PartUnavailable(f"--from {public(urlunsplit(parts))}: there is no such page")
    if path.suffix == ".jsonl":
        beside = inputs_path(Path(parts.path))
        _download(urlunsplit(parts._replace(path=str(beside))), inputs_path(path), largest, deadline)
    return path


def _download(address: str, path: Path, largest: int, deadline: float) -> bool:
    """Download a file; False when the server has none."""
    # Every run imports this module, and few download.
    from harness.web.download import DownloadError, download

    begin = f"--from {public(address)}"
    certificates = index_settings()[0].get("SSL_CERT_FILE")
    try:
        with open(path, "wb") as file:
            seconds = deadline - time.monotonic()
            response = download(
                read_address(address), file, largest=largest, seconds=seconds, certificates=certificates
            )
    except DownloadError as error:
        raise PartUnavailable(f"{begin}: {error}") from None
    if response.status in (404, 410):
        path.unlink()
        return False
    if response.status != 200:
        raise PartUnavailable(f"{begin}: the server answers {response.reason}")
    return True
