"""Text that came out of compilers and files, made harmless to look at."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from harness.backends import BACKENDS
from harness.environments.releases import NAMES
from harness.protocol.text import clean, one_line
from harness.toolkits.header_libraries import LIBRARIES

__all__ = ["clean", "one_line", "safe_link"]


def safe_link(address: str) -> str:
    """Return the address when a browser may follow it (http and https), and the empty text otherwise."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    plain = not re.search(r"[\s\x00-\x20\x7f<>\"'\\]", address)
    return address if plain and parts.scheme in ("http", "https") and parts.netloc else ""


def trackers() -> dict[str, dict[str, str]]:
    """The address of the form for a new issue, by what is reported to.

    Returns
    -------
    dict
        ``backends`` by backend, ``libraries`` by header library; NVRTC and nvcc have no public tracker, and are not there. By backend also
        ``searched``, the library whose releases ``cumatrix bisect`` can search, and ``languages``, the one that it looks for first.
    """
    return {
        "backends": {name: info.tracker for name, info in BACKENDS.items() if info.tracker},
        "libraries": {name: library.tracker for name, library in LIBRARIES.items() if library.tracker},
        "searched": {name: info.library for name, info in BACKENDS.items() if info.library in NAMES},
        "languages": {name: info.languages[0] for name, info in BACKENDS.items()},
    }
