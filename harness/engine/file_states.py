"""States of files, identified by their content."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import stat
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import harness
from harness.engine.reads import ASPECTS, BYTECODE, DIRECTORY, LARGEST, LINK, TIMES, Signature, marks_of, plain
from harness.toolkits.store import data_folder

# Magic numbers of file systems that update the time of change with every write (statfs(2)): ext2 to ext4, XFS, Btrfs,
# F2FS, bcachefs, ZFS, overlayfs, NFS, Lustre, GPFS and Ceph. FUSE, CIFS, 9P and FAT file systems make no such promise.
_POSIX = frozenset(
    (0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0xCA451A4E, 0x2FC12FC1, 0x794C7630, 0x6969, 0x0BD00BD3, 0x47504653, 0x00C36400)
)  # fmt: skip
# tmpfs and ramfs: a mapped page stays writable without any change of timestamps.
_IN_MEMORY = frozenset((0x01021994, 0x858458F6))
_READ_ONLY = 1  # ST_RDONLY: another image may have the same inodes and times
# Bytes. Compilers and libraries of this size are replaced, not modified through a mapping.
_LARGE = 4 << 20
# The kernel writes a mapped page back within 35 s (vm.dirty_expire_centisecs, dirty_writeback_centisecs); until then,
# further writes to it do not change the timestamps (ns).
_MAPPED = 60_000_000_000
# A file system's clock may not advance for 10 ms (ns).
_FRESH = 20_000_000

_libc = ctypes.CDLL(None, use_errno=True)


class Timestamps:
    """Decides whether a file's signature represents its content; file systems are checked again after two seconds."""

    def __init__(self) -> None:
        self._devices: dict[int, tuple[float, int, bool]] = {}

    def hold(self, path: str, signature: Signature) -> bool:
        """Return whether the file's content stays the same as long as its signature does."""
        small = signature[2] <= _LARGE
        if time.time_ns() - signature[4] < (_MAPPED if small else _FRESH):
            return False
        kind, read_only = self._file_system(path, signature[0])
        return not read_only and (kind in _POSIX or (kind in _IN_MEMORY and not small))

    def _file_system(self, path: str, device: int) -> tuple[int, bool]:
        now = time.monotonic()
        known = self._devices.get(device)
        if not known or now - known[0] >= _MEMORY:
            known = self._devices[device] = (now, *_statfs(path))
        return known[1], known[2]


def _statfs(path: str) -> tuple[int, bool]:
    """Return a file system's magic number, and whether it is mounted read-only; ``(0, True)`` if the call fails."""
    room = ctypes.create_string_buffer(256)
    if _libc.statfs(os.fsencode(path), room):
        return 0, True
    words = struct.unpack_from("@11l", room)
    return words[0] & 0xFFFFFFFF, bool(words[10] & _READ_ONLY)


# Above this size, a file's signature represents its content: PyTorch's libraries have gigabytes.
_HASHED = 512 << 20
_PIECE = 2 << 20
# Lifetime of a state in memory (s).
_MEMORY = 2.0
# Approximate bytes hashed per second: a hash whose signature is unreliable stays valid as long as computing it takes.
_SPEED = 10 << 20
# State of a bytecode cache that Python checks against its source (PEP 552, https://peps.python.org/pep-0552/).
_CHECKED = "checked"
_USER = os.getuid()


class Files:
    """Reads states of files; caches hashes by signature, and states for two seconds.

    Attributes
    ----------
    hashes : dict
        Hashes of content by signature, each with the marks of the text (`harness.engine.reads`), if timestamps reflect
        every change.
    fresh : set of str
        Paths that were hashed here.
    """

    def __init__(self) -> None:
        self.hashes: dict[Signature, str] = {}
        self.fresh: set[str] = set()
        self._timestamps = Timestamps()
        self._brief: dict[Signature, tuple[float, str]] = {}
        self._reading: dict[Signature, threading.Lock] = {}
        self._states: dict[tuple[str, bool], tuple[float, str]] = {}
        self._sets: dict[str, tuple[float, str]] = {}

    def state(self, path: str, listed: bool = False) -> str:
        """Return the state of a path, at most two seconds old.

        Returns
        -------
        str
            - ``f:`` and the hash of a file's content, followed by ``:`` and the marks of its text if any, and by ``+x``
              if this user may execute it
            - ``d`` for a directory, with a hash of its names if `listed`
            - ``-`` for a missing file
            - ``e:`` and the error number if this user may not read it
            - ``l:`` and a hash of the link's target, for a path after `LINK`
            - ``t:`` and mode, owner, size and time, for a path after `TIMES`
            - ``o:`` for anything else
        """
        return self._state(path, listed, time.monotonic())[1]

    def hash_of_set(
        self,
        name: str,
        paths: tuple[tuple[str, bool], ...],
        more: Callable[[tuple[tuple[str, bool], ...], list[str]], list[str]] = lambda _paths, _states: [],
    ) -> str:
        """Hash the states of a named set of files, and the result of `more` on them.

        As with `state`, no state is older than two seconds.
        """
        now = time.monotonic()
        known = self._sets.get(name)
        if known and now - known[0] < _MEMORY:
            return known[1]
        each_state = [self._state(path, listed, now) for path, listed in paths]
        states = [state for _, state in each_state]
        found = self.hash_of([*states, *more(paths, states)])
        self._sets[name] = (min((when for when, _ in each_state), default=now), found)
        return found

    def _state(self, path: str, listed: bool, now: float) -> tuple[float, str]:
        """Return a state, and the time when it was read."""
        known = self._states.get((path, listed))
        if not known or now - known[0] >= _MEMORY:
            known = self._states[path, listed] = (now, self.current_state(path, listed)[0])
        return known

    def current_state(self, path: str, listed: bool = False) -> tuple[str, Signature | None]:
        """Return the current state and signature; the signature of a missing file is None."""
        if path.startswith(LINK):
            return _leading(path.removeprefix(LINK))
        if path.startswith(TIMES):
            return _metadata(path.removeprefix(TIMES))
        if path.startswith(BYTECODE):
            return self._bytecode(path.removeprefix(BYTECODE)), ()
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
            return f"o:{stat.S_IFMT(found.st_mode):o}", None
        return self._content(path, found), signature

    def share(self, read: Mapping[str, Signature | None]) -> None:
        """Hash the files that no other thread is hashing; runners with the same libraries divide the work this way."""
        for path, signature in read.items():
            if not signature or len(signature) < 5 or signature[2] > _HASHED or self._known(signature):
                continue
            if path.startswith(ASPECTS):
                continue
            lock = self._reading.setdefault(signature, threading.Lock())
            if not lock.acquire(blocking=False):
                continue
            try:
                if stat.S_ISREG((found := os.stat(path)).st_mode) and signature_of(found) == signature:
                    self._hashed(path, signature)
            except (OSError, ValueError):
                pass  # reading its state reports the error
            finally:
                lock.release()

    def state_of_read(self, path: str, listed: bool, read: Signature | None) -> str | None:
        """Return the current state of a file that was read with a signature; None if the file has changed since."""
        if read and not listed and not path.startswith(ASPECTS) and (digest := self._known(read)):
            try:
                if signature_of(found := os.stat(path)) == read:
                    return _rights(path, found) or f"f:{digest}{_runs(path, found)}"
            except (OSError, ValueError):
                pass  # it is gone
        state, signature = self.current_state(path, listed)
        return state if read in (signature, ()) or self._same_content(read, state) else None

    def _known(self, signature: Signature) -> str:
        """Return the hash for a signature that represents the content, or a very recent hash; empty if unknown."""
        if digest := self.hashes.get(signature):
            return digest
        when, digest = self._brief.get(signature, (0.0, ""))
        return digest if digest and time.monotonic() - when < _MEMORY + signature[2] / _SPEED else ""

    def _content(self, path: str, found: os.stat_result) -> str:
        signature = signature_of(found)
        if refused := _rights(path, found):
            return refused
        if signature[2] > _HASHED:
            return f"s:{signature}{_runs(path, found)}"
        digest = self._known(signature)
        if not digest:
            with self._reading.setdefault(signature, threading.Lock()):
                digest = self._hashed(path, signature)
        return digest if digest.startswith("e:") else f"f:{digest}{_runs(path, found)}"

    def _hashed(self, path: str, signature: Signature) -> str:
        """Return the hash of a file, computed if unknown, or the error."""
        if digest := self._known(signature):
            return digest
        try:
            digest = _digest_of(path, signature[2])
        except OSError as error:
            return f"e:{error.errno}"
        self._keep(path, signature, digest)
        return digest

    def _keep(self, path: str, signature: Signature, digest: str) -> None:
        if self._timestamps.hold(path, signature):
            self.hashes[signature] = digest
            self.fresh.add(path)
        else:
            self._brief[signature] = (time.monotonic(), digest)

    def _bytecode(self, path: str) -> str:
        """Return the state of a bytecode cache with a recorded source: its content only if Python skips the check."""
        try:
            found = os.stat(path)
            signature = signature_of(found)
            known = self._known(signature)
            if not known:
                with open(path, "rb") as file:
                    flags = int.from_bytes(file.read(8)[4:], "little")
                known = _digest_of(path, signature[2]) if flags & 3 == 1 else _CHECKED
                self._keep(path, signature, known)
        except (OSError, ValueError):
            return _CHECKED  # Python creates it
        return known

    def _same_content(self, signature: Signature | None, state: str) -> bool:
        """Return whether a file with this signature is known to have had the content of this state.

        A hard link to a file, as uv creates for another environment, changes its signature and nothing else.
        """
        if not signature:
            return False
        digest = self.hashes.get(signature) or self._brief.get(signature, (0.0, ""))[1]
        return bool(digest) and state.removesuffix(_RUNS) == f"f:{digest}"

    def hash_of(self, states: Iterable[str]) -> str:
        """Hash states in their order."""
        return hashlib.sha256("\0".join(states).encode()).hexdigest()


def _digest_of(path: str, size: int) -> str:
    """Return the SHA-256 of a file and the marks of its text.

    The file is read in large pieces, because a hashing thread waits for the interpreter's lock after each of them.
    """
    digest, piece = hashlib.sha256(), memoryview(bytearray(min(max(1, size), _PIECE)))
    text: bytearray | None = bytearray()
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(piece):
            digest.update(piece[:count])
            if text is not None:
                text += piece[:count]
                if len(text) > LARGEST or b"\0" in text[:4096]:
                    text = None
    marks = marks_of(bytes(text), path) if text else ""
    return f"{digest.hexdigest()}:{marks}" if marks else digest.hexdigest()


def marks_in(state: str) -> str:
    """Return the marks in a file's state."""
    return state.removesuffix(_RUNS).partition(":")[2].partition(":")[2] if state.startswith("f:") else ""


_RUNS = "+x"


def _runs(path: str, found: os.stat_result) -> str:
    """Return `_RUNS` if this user may execute a file."""
    return _RUNS if found.st_mode & 0o111 and os.access(path, os.X_OK) else ""


def _rights(path: str, found: os.stat_result) -> str:
    """Return the error of this user when reading a file; empty if it is readable. Another user may have hashed it."""
    own = found.st_uid == _USER and found.st_mode & 0o400
    return "" if own or os.access(path, os.R_OK) else f"e:{errno.EACCES}"


def _metadata(path: str) -> tuple[str, Signature | None]:
    """Return state and signature of a file by its stat(2) metadata, except its inode."""
    try:
        found = os.stat(path)
    except OSError:
        return "-", None
    fields = (found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns)
    return "t:" + ":".join(map(str, fields)), signature_of(found)


def signature_of(found: os.stat_result) -> Signature:
    """Return the identity of a file's state without reading the file."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _leading(path: str) -> tuple[str, Signature | None]:
    """Return state and signature of a symbolic link by its target."""
    try:
        to, found = os.fsencode(os.readlink(path)), os.lstat(path)
    except OSError:  # missing, or not a link any more
        return "-", None
    return f"l:{hashlib.sha256(to).hexdigest()}", (found.st_dev, found.st_ino, 0, sum_of_names([to]), 0)


def _listing(path: str, signature: Signature) -> tuple[str, Signature]:
    """Return state and signature of a directory by its names; ``__pycache__`` may appear at any time and is ignored."""
    try:
        names = sorted(os.fsencode(name) for name in os.listdir(path) if name != "__pycache__")
    except OSError as error:
        return f"e:{error.errno}", ()
    return f"d:{hashlib.sha256(bytes(1).join(names)).hexdigest()}", (*signature[:2], 0, sum_of_names(names), 0)


def sum_of_names(names: Iterable[bytes]) -> int:
    """Sum names as ``native/reads.c`` does (`sum_of` there)."""
    return sum(zlib.crc32(name) | zlib.adler32(name) << 32 for name in names) % (1 << 64) % (1 << 62)


_MOST = 1 << 14
"""Maximum number of cached names."""

_SYSTEM = ("/", "/usr", "/usr/local")
"""Prefixes of interpreters with the system's files, whose paths are the same on every machine."""

_INSTALLED = frozenset(("$CUMATRIX_HOME", "$CUMATRIX", "$PYTHON"))
"""Roots of installed files."""

_LIBRARY = re.compile(r"\blib(?:64)?/python3\.\d+/")
"""Libraries of an interpreter in the home folder, as uv and pyenv install it."""


class Roots:
    """Names of paths: the same file has the same name on every machine, wherever its folder is.

    This resembles ccache's ``base_dir`` (https://ccache.dev/manual/latest.html#config_base_dir): the content of a file
    counts, not its location. A path outside of the folders is its own name.

    Parameters
    ----------
    folders : Mapping[str, str]
        Absolute folder by name. If a folder's path has links, the resolved path gets a second name.
    """

    def __init__(self, folders: Mapping[str, str]) -> None:
        self.folders: dict[str, str] = {}
        for name, folder in folders.items():
            place, real = os.path.abspath(folder), os.path.realpath(folder)
            self.folders[name] = place
            if real != place:
                self.folders[f"{name}~"] = real
        pairs = [(place, name) for name, place in self.folders.items() if place != "/"]
        self._deepest_first = sorted(pairs, key=lambda pair: (-len(pair[0]), pair[1]))
        self._names: dict[str, str] = {}

    @classmethod
    def of(cls, python: str, here: Path | None = None, more: Mapping[str, str] | None = None) -> Roots:
        """Return the roots of this process.

        Parameters
        ----------
        python : str
            Interpreter of the environment under test.
        here : Path, optional
            The folder of the run; by default, the current one.
        more : Mapping, optional
            Additional folders by name.
        """
        found = {
            "$HERE": str(here or Path.cwd()),
            "$CUMATRIX_HOME": str(data_folder()),
            "$CUMATRIX": str(Path(harness.__file__).parent),
            "$HOME": os.path.expanduser("~"),
            **(more or {}),
        }
        prefix = os.path.dirname(os.path.dirname(python))
        if os.path.isabs(prefix) and prefix not in _SYSTEM:
            found["$PYTHON"] = prefix
        return cls(found)

    def name(self, path: str) -> str:
        """Return the name of an absolute path, with or without a prefix of `ASPECTS`."""
        # Cells read mostly the same files.
        name = self._names.get(path)
        if name is None:
            if len(self._names) >= _MOST:
                self._names.clear()
            name = self._names[path] = self._name(path)
        return name

    def _name(self, path: str) -> str:
        for aspect in ASPECTS:
            if path.startswith(aspect):
                return aspect + self.name(path.removeprefix(aspect))
        for folder, name in self._deepest_first:
            if path.startswith(folder) and (len(path) == len(folder) or path[len(folder)] == "/"):
                return name + path[len(folder) :]
        return path

    def is_own(self, path: str) -> bool:
        """Return whether a file is the user's: in a named folder, but not of an interpreter, a toolkit or cumatrix."""
        return not self.name(plain(path)).startswith("/") and not self.is_installed(path)

    def is_installed(self, path: str) -> bool:
        """Return whether a file belongs to an interpreter, a toolkit or cumatrix itself."""
        root, _, rest = self.name(plain(path)).partition("/")
        return root.rstrip("~") in _INSTALLED or bool(_LIBRARY.search(rest))

    def path(self, name: str) -> str | None:
        """Return the path of a name; None if its folder does not exist here."""
        for aspect in ASPECTS:
            if name.startswith(aspect):
                found = self.path(name.removeprefix(aspect))
                return None if found is None else aspect + found
        root, slash, rest = name.partition("/")
        if root:
            return self.folders[root] + slash + rest if root in self.folders else None
        for other, folder in self.folders.items():
            if other.startswith("/") and (name == other or name.startswith(f"{other}/")):
                return folder + name[len(other) :]
        return name

    def names(self, paths: str) -> str:
        """Replace the paths in a variable such as ``PATH`` by their names."""
        return os.pathsep.join(map(self.name, paths.split(os.pathsep)))
