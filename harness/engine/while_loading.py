"""What is done while a fork server loads its library: the keys of its cells follow from the libraries that it loads, and hashing these may take as long as a cell."""

from __future__ import annotations

import os
import re
import time

from harness.engine.files import Files, signature_of
from harness.engine.fork_server import ForkServer, below
from harness.engine.reads import Signature
from harness.protocol.reads import mapped

_LARGE = 2 << 20  # bytes
_LIBRARY = re.compile(r"\.so(\.|$)")
_LOOK, _LONGEST = 0.1, 60.0  # seconds


def hash_meanwhile(fork_server: ForkServer, files: Files) -> None:
    """Hash the large libraries that a fork server has loaded so far, until it is ready.

    Parameters
    ----------
    fork_server : ForkServer
        One that may be loading; runners whose fork servers load the same share its files out.
    files : Files
        Keeps the hashes.
    """
    end = time.monotonic() + _LONGEST
    while fork_server.loads(_LOOK) and time.monotonic() < end:
        for path, signature in mapped_below(fork_server.process.pid).items():
            files.share({path: signature})
            if not fork_server.loads(0):
                return


def mapped_below(pid: int) -> dict[str, Signature]:
    """Large files that the children of a process have mapped now, with their signatures: libraries, mostly."""
    found: dict[str, Signature] = {}
    try:
        for child in below(pid):
            for path in filter(_LIBRARY.search, mapped(child)):
                there = os.stat(path)
                if there.st_size >= _LARGE:
                    found[path] = signature_of(there)
    except OSError:
        pass  # it has ended, or a file is gone: whoever asks for its state is told
    return found
