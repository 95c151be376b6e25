"""States of files: what is at a path, told by content."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
import zlib
from collections.abc import Iterable, Mapping

from harness.engine.reads import DIRECTORY, LINK, Signature

# Above this, a file's signature stands for its content: libraries of PyTorch have gigabytes.
_HASHED = 512 << 20
_PIECE = 2 << 20
# A state that was looked at so shortly ago is not looked at again (s).
_MEMORY = 2.0
# A file that changed so shortly ago may change again under the same signature (ns).
_FRESH = 20_000_000


class Files:
    """Looks at files; remembers hashes by signature, and for a moment also what it saw.

    Attributes
    ----------
    hashes : dict
        Hashes of content by signature.
    fresh : set of str
        Paths whose hash was made here.
    """

    def __init__(self) -> None:
        self.hashes: dict[Signature, str] = {}
        self.fresh: set[str] = set()
        self._reading: dict[Signature, threading.Lock] = {}
        self._states: dict[tuple[str, bool], tuple[float, str]] = {}
        self._sets: dict[str, tuple[float, str]] = {}

    def state(self, path: str, listed: bool = False) -> str:
        """What is at a path, or was within the last two seconds.

        Returns
        -------
        str
            ``f:`` and the hash of a file's content, ``d`` for a directory (with a hash of its names if `listed`),
            ``-`` for nothing, ``l`` with a hash of where a link leads for a path after `LINK`, ``o`` for anything else.
        """
        return self._seen(path, listed, time.monotonic())[1]

    def hash_of_set(self, name: str, paths: Iterable[tuple[str, bool]]) -> str:
        """`hash_of` the states of files that go by a name together; as with `state`, nothing of it is older than two seconds."""
        now = time.monotonic()
        known = self._sets.get(name)
        if known and now - known[0] < _MEMORY:
            return known[1]
        seen = [self._seen(path, listed, now) for path, listed in paths]
        found = self.hash_of(state for _, state in seen)
        self._sets[name] = (min((when for when, _ in seen), default=now), found)
        return found

    def _seen(self, path: str, listed: bool, now: float) -> tuple[float, str]:
        """A state, and when it was looked at."""
        known = self._states.get((path, listed))
        if not known or now - known[0] >= _MEMORY:
            known = self._states[path, listed] = (now, self.state_now(path, listed)[0])
        return known

    def state_now(self, path: str, listed: bool = False) -> tuple[str, Signature | None]:
        """State and signature at this moment; None as the signature of nothing."""
        if path.startswith(LINK):
            return _leading(path.removeprefix(LINK))
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "-", None
        except (OSError, ValueError) as error:
            return f"e:{getattr(error, 'errno', 0)}", ()
        signature = signature_of(found)
        if stat.S_ISDIR(found.st_mode):
            return _listing(path, signature) if listed else ("d", DIRECTORY)
        if not stat.S_ISREG(found.st_mode):
            return "o", None
        return self._content(path, signature), signature

    def share(self, read: Mapping[str, Signature | None]) -> None:
        """Hash those of these files that nobody else is hashing: runners that start together have read the same libraries, and share them out so."""
        for path, signature in read.items():
            if not signature or len(signature) < 5 or signature in self.hashes or signature[2] > _HASHED:
                continue
            lock = self._reading.setdefault(signature, threading.Lock())
            if not lock.acquire(blocking=False):
                continue
            try:
                if stat.S_ISREG((found := os.stat(path)).st_mode) and signature_of(found) == signature:
                    self._hashed(path, signature)
            except (OSError, ValueError):
                pass  # whoever asks for its state is told
            finally:
                lock.release()

    def state_of_read(self, path: str, listed: bool, read: Signature | None) -> str | None:
        """State at this moment of what was read with a signature; None where it is not what was read."""
        if read and not listed and (digest := self.hashes.get(read)):
            try:
                if signature_of(os.stat(path)) == read:
                    return f"f:{digest}"
            except (OSError, ValueError):
                pass  # it is gone, or it is a link that is asked where it leads
        state, signature = self.state_now(path, listed)
        return state if read in (signature, ()) or self._same_content(read, state) else None

    def _content(self, path: str, signature: Signature) -> str:
        if signature[2] > _HASHED:
            return f"s:{signature}"
        if signature in self.hashes:
            return f"f:{self.hashes[signature]}"
        with self._reading.setdefault(signature, threading.Lock()):
            return self._hashed(path, signature)

    def _hashed(self, path: str, signature: Signature) -> str:
        if signature in self.hashes:
            return f"f:{self.hashes[signature]}"
        try:
            digest = _digest_of(path, signature[2])
        except OSError as error:
            return f"e:{error.errno}"
        if time.time_ns() - signature[4] >= _FRESH:
            self.hashes[signature] = digest
            self.fresh.add(path)
        return f"f:{digest}"

    def _same_content(self, signature: Signature | None, state: str) -> bool:
        """Whether a file had the content of this state when it had this signature, as far as that was ever looked at.

        A hard link to a file, which uv makes for a further environment, changes its signature and nothing else.
        """
        return signature in self.hashes and state == f"f:{self.hashes[signature]}"

    def hash_of(self, states: Iterable[str]) -> str:
        """One hash over states in their order."""
        return hashlib.sha256("\0".join(states).encode()).hexdigest()


def _digest_of(path: str, size: int) -> str:
    """SHA-256 of a file, in large pieces: a thread that hashes waits for the interpreter's lock after each of them, as long as the others like."""
    digest, piece = hashlib.sha256(), memoryview(bytearray(min(max(1, size), _PIECE)))
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(piece):
            digest.update(piece[:count])
    return digest.hexdigest()


def signature_of(found: os.stat_result) -> Signature:
    """What tells one state of a file from the next without reading it."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _leading(path: str) -> tuple[str, Signature | None]:
    """State and signature of a symbolic link by where it leads."""
    try:
        to, found = os.fsencode(os.readlink(path)), os.lstat(path)
    except OSError:  # nothing, or no link any more
        return "-", None
    return f"l:{hashlib.sha256(to).hexdigest()}", (found.st_dev, found.st_ino, 0, sum_of_names([to]), 0)


def _listing(path: str, signature: Signature) -> tuple[str, Signature]:
    """State and signature by the names in a directory; Python's compiled modules come and go beside their sources."""
    try:
        names = sorted(os.fsencode(name) for name in os.listdir(path) if name != "__pycache__")
    except OSError as error:
        return f"e:{error.errno}", ()
    return f"d:{hashlib.sha256(bytes(1).join(names)).hexdigest()}", (*signature[:2], 0, sum_of_names(names), 0)


def sum_of_names(names: Iterable[bytes]) -> int:
    """What ``native/reads.c`` makes of names, too (`sum_of` there)."""
    return sum(zlib.crc32(name) | zlib.adler32(name) << 32 for name in names) % (1 << 64) % (1 << 62)
