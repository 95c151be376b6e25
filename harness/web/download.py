"""One HTTP download, limited in time and size; credentials go only to their own origin.

This module loads `ssl` and `urllib.request`; import it inside the function that downloads.
"""

from __future__ import annotations

import ctypes
import http.client
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from string import punctuation
from typing import Any, BinaryIO
from urllib.parse import quote, urljoin

from harness.web.address import Address, AddressError, read_address

_SILENCE = 30.0  # seconds without data
_REDIRECTS = 10
_MOVED = (301, 302, 303, 307, 308)
_PIECE = 1 << 20
_LATE = "it did not arrive within the time limit"


class DownloadError(Exception):
    """A failed download; the message is a clause that follows the address, and quotes nothing that the server sent."""


@dataclass(frozen=True)
class Response:
    """A server's response.

    Parameters
    ----------
    status : int
        The HTTP status. Only the body of a 200 is kept.
    content_type : str
        Media type in lower case, without parameters.
    """

    status: int
    content_type: str = ""

    @property
    def reason(self) -> str:
        """The status with its phrase: ``404 Not Found``."""
        names = {status.value: status.phrase for status in HTTPStatus}
        return f"{self.status} {names.get(self.status, '')}".rstrip()


def download(
    address: Address,
    file: BinaryIO,
    *,
    largest: int,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    certificates: str | None = None,
) -> Response:
    """Download an address.

    A separate thread downloads, which enforces the time limit during name resolution, handshakes, headers and chunks too.

    Parameters
    ----------
    address : Address
        The address.
    file : BinaryIO
        Receives the body.
    largest : int
        Maximum size of the body in bytes.
    seconds : float
        Time limit in seconds, redirects included.
    headers : Mapping[str, str], optional
        Additional headers. Every server of a redirect receives them, so they must contain no secrets.
    certificates : str, optional
        File of certificate authorities; the system's by default.

    Raises
    ------
    DownloadError
        If the download fails, or exceeds a limit.
    """
    attempt = _Attempt(address, largest, time.monotonic() + seconds, headers or {}, certificates)
    thread = threading.Thread(target=attempt.run, args=(file,), name="download", daemon=True)
    thread.start()
    try:
        thread.join(max(seconds, 0))
        # A thread that ends later may have ended because its connection was closed.
        late = thread.is_alive()
    finally:
        attempt.sockets.close()
    if late:
        raise DownloadError(_LATE)
    if attempt.error is not None:
        raise attempt.error
    assert attempt.response is not None
    return attempt.response


class _Sockets:
    """The connections of one download; another thread can close them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copies: list[socket.socket] = []
        self._closed = False

    def open(self, *arguments: Any, **named: Any) -> socket.socket:
        """Connect like `socket.create_connection`."""
        opened = socket.create_connection(*arguments, **named)
        with self._lock:
            if self._closed:
                opened.close()
                raise TimeoutError
            # A copy of the descriptor, because TLS takes over the original.
            self._copies.append(opened.dup())
        return opened

    def close(self) -> None:
        """Close every connection; threads that wait for one continue at once."""
        with self._lock:
            self._closed = True
            for copy in self._copies:
                try:
                    copy.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the server has closed it
                # The process would still read what the server keeps sending. Connecting to AF_UNSPEC resets the connection (connect(2)).
                ctypes.CDLL(None).connect(copy.fileno(), bytes(16), 16)
                copy.close()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirects to `_Attempt`: urllib reads the whole body of a redirect, and forwards every header."""

    def http_error_302(self, *arguments: Any) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


class _Http(urllib.request.HTTPHandler):
    def __init__(self, sockets: _Sockets) -> None:
        super().__init__()
        self._sockets = sockets

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **named: Any) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(host, **named)
        connection._create_connection = self._sockets.open  # type: ignore[attr-defined]
        return connection


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, sockets: _Sockets, certificates: str | None) -> None:
        context = ssl.create_default_context(cafile=certificates)
        super().__init__(context=context)
        self._sockets, self._trusted = sockets, context

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **named: Any) -> http.client.HTTPConnection:
        connection = http.client.HTTPSConnection(host, context=self._trusted, **named)
        connection._create_connection = self._sockets.open  # type: ignore[attr-defined]
        return connection


@dataclass
class _Attempt:
    """The state of a download in its thread."""

    address: Address
    largest: int
    deadline: float
    headers: Mapping[str, str]
    certificates: str | None
    sockets: _Sockets = field(default_factory=_Sockets)
    response: Response | None = None
    error: BaseException | None = None

    def run(self, file: BinaryIO) -> None:
        """Download, and store the response or the error."""
        try:
            self.response = self._download(file)
        except BaseException as error:  # noqa: BLE001 (the caller's thread raises it)
            self.error = self._explained(error)

    def _explained(self, error: BaseException) -> BaseException:
        """Convert an error that a server causes into a `DownloadError`; return any other error unchanged."""
        if isinstance(error, AddressError):
            return DownloadError(f"a redirect names no valid address: {error}")
        if isinstance(error, (http.client.HTTPException, ValueError, ArithmeticError)):
            return DownloadError(_of_http(error))
        if isinstance(error, OSError):
            late = time.monotonic() >= self.deadline
            return DownloadError(_LATE if late else f"the connection failed: {_of_system(error)}")
        return error

    def _download(self, file: BinaryIO) -> Response:
        handlers = (_NoRedirect(), _Http(self.sockets), _Https(self.sockets, self.certificates))
        opener = urllib.request.build_opener(*handlers)
        opener.addheaders = []
        current, authorization = self.address, self.address.authorization
        for _ in range(_REDIRECTS + 1):
            request = urllib.request.Request(current.url, headers={"User-Agent": "cumatrix", **self.headers})  # noqa: S310 (`read_address` checks the scheme)
            if authorization:
                request.add_unredirected_header("Authorization", authorization)
            try:
                with opener.open(request, timeout=self._remaining()) as answer:
                    return self._body(answer, file)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _MOVED or not error.headers.get("Location"):
                        return Response(error.code)
                    target = _redirected(current, error.headers["Location"])
            if current.origin[0] == "https" and target.origin[0] != "https":
                raise DownloadError("it is redirected from https:// to http://, which cumatrix does not follow")
            if target.origin != current.origin:
                authorization = ""
            current = target
        raise DownloadError(f"it is redirected more than {_REDIRECTS} times")

    def _body(self, answer: http.client.HTTPResponse, file: BinaryIO) -> Response:
        if answer.status != HTTPStatus.OK:
            return Response(answer.status)
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise DownloadError("it is sent compressed, which cumatrix did not ask for")
        announced = answer.length
        count = 0
        while announced is None or announced <= self.largest:
            self._remaining()
            data = answer.read(_PIECE)
            count += len(data)
            if count > self.largest:
                break
            if not data:
                if announced is not None and count != announced:
                    raise DownloadError("the connection ended before all of it had come")
                return Response(answer.status, answer.headers.get_content_type())
            file.write(data)
        raise DownloadError(f"it has more than {self.largest >> 20} MiB")

    def _remaining(self) -> float:
        """Return the seconds left for the next operation."""
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise DownloadError(_LATE)
        return min(remaining, _SILENCE)


def _redirected(before: Address, location: str) -> Address:
    """Return the target of a redirect without credentials.

    Neither the credentials in the address nor those in ``.netrc`` are meant for this download.
    """
    try:
        # Non-ASCII bytes of a header are Latin-1.
        joined = urljoin(before.url, quote(location, encoding="iso-8859-1", safe=punctuation))
    except ValueError:
        raise AddressError("its host or port is not valid") from None
    return Address(read_address(joined).url)


def _of_http(error: Exception) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended before all of it had come"
    if isinstance(error, http.client.RemoteDisconnected):
        return "the connection ended without a response"
    return f"the response is not valid HTTP ({type(error).__name__})"


def _of_system(error: OSError) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, TimeoutError):
        return f"no byte came within {_SILENCE:.0f} s"
    if isinstance(reason, ssl.SSLError):
        return f"TLS failed: {reason.reason or type(reason).__name__}"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror
    if found := re.match(r"Tunnel connection failed: (\d{3})\b", str(reason)):
        return f"the proxy returned {found[1]}"
    return type(reason).__name__
