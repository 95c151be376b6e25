"""Web addresses: their credentials, and the redacted form for messages and records."""

from __future__ import annotations

import base64
import netrc
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

_PORTS = {"http": 80, "https": 443}
_CREDENTIALS = re.compile(r"(?<=://)([^\s/'\"]*)@")
_QUERY = re.compile(r"(https?://[^\s'\"?#]*)\?[^\s'\"]*")


class AddressError(ValueError):
    """An invalid address; the message quotes no part of it."""


@dataclass(frozen=True)
class Address:
    """An HTTP address and its credentials.

    Parameters
    ----------
    url : str
        The address without user name and password.
    authorization : str
        The Authorization header, from the address or else from ``.netrc``; empty without credentials.
    """

    url: str
    authorization: str = ""

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port; credentials are sent to one origin only."""
        parts = urlsplit(self.url)
        return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS[parts.scheme]


def read_address(text: str) -> Address:
    """Split an address into its URL and credentials.

    Raises
    ------
    AddressError
        If the text is not a valid HTTP address.
    """
    parts = _parts(text)
    if parts.scheme not in _PORTS:
        raise AddressError("an address begins with https:// or http://")
    host = parts.hostname or ""
    try:
        host.encode("ascii" if ":" in host else "idna")
    except UnicodeError:
        raise AddressError("its host is no valid name") from None
    if not host or re.search(r"[\x00-\x20\x7f]", text):
        raise AddressError("it has no host, or a space or a control character in it")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not user:
        user, password = _of_netrc(host)
    token = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape")).decode()
    return Address(urlunsplit(_bare(parts)), f"Basic {token}" if user else "")


def public(text: str) -> str:
    """Return an address without user name, password, query and fragment; return any other text unchanged."""
    if "://" not in text:
        return text
    try:
        return urlunsplit(_bare(_parts(text))._replace(query="", fragment=""))
    except AddressError:
        # A password may contain "/": everything before the last "@" may be a part of it.
        scheme, _, rest = re.split(r"[?#]", text, maxsplit=1)[0].partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"


def _parts(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises ValueError for an invalid port
    except ValueError:
        raise AddressError("its host or port is not valid") from None
    return parts


def _bare(parts: SplitResult) -> SplitResult:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2])


def _of_netrc(host: str) -> tuple[str, str]:
    try:
        user, _, password = netrc.netrc().authenticators(host) or ("", "", "")
    except (OSError, ValueError, netrc.NetrcParseError):
        return "", ""
    return user or "", password or ""


def redact(text: str) -> str:
    """Remove the user name, the password and the query from each address in a text, but keep ssh's ``git@``."""
    return _QUERY.sub(r"\1", _CREDENTIALS.sub(_without_password, text))


def _without_password(match: re.Match[str]) -> str:
    of_ssh = match.string.endswith(("ssh://", "SSH://"), 0, match.start())
    name = match[1].partition(":")[0] if of_ssh else ""
    return name and f"{name}@"


def refuse_credentials(address: str) -> None:
    """Refuse an address with a password, or with a token in its place.

    Records, messages and the commands that reproduce a cell contain the address unchanged.

    Raises
    ------
    AddressError
        If the address has a password or a token. The user name of an ssh address is allowed.
    """
    if redact(address).partition("?")[0] != address.partition("?")[0]:
        raise AddressError(
            "an address with a password would be kept in records: put the password into ~/.netrc or git's credential helper"
        )
