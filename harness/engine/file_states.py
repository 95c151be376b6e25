"""The state of a file, identified by its content."""

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

# Magic numbers of file systems whose time of change moves with every write (statfs(2)): ext2 to ext4, XFS, Btrfs, F2FS, bcachefs, ZFS, overlayfs,
# NFS, Lustre, GPFS and Ceph. A FUSE, CIFS, 9P or FAT file system makes no such promise.
_POSIX = frozenset(
    (0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0xCA451A4E, 0x2FC12FC1, 0x794C7630, 0x6969, 0x0BD00BD3, 0x47504653, 0x00C36400)
)  # fmt: skip
# tmpfs and ramfs: a page that a program has mapped stays writable without a trace.
_IN_MEMORY = frozenset((0x01021994, 0x858458F6))
_READ_ONLY = 1  # ST_RDONLY: another image may have the same inodes and times
# Bytes. Compilers and libraries that are this large are replaced, and not written to through a mapping.
_LARGE = 4 << 20
# The kernel writes a mapped page back within 35 s (vm.dirty_expire_centisecs, dirty_writeback_centisecs), and until then a further write to it
# shows in no timestamp (ns).
_MAPPED = 60_000_000_000
# The clock of a file system may stand still for 10 ms (ns).
_FRESH = 20_000_000

_libc = ctypes.CDLL(None, use_errno=True)


class Timestamps:
    """Decides whether the signature of a file represents its content; its view of a file system is at most two seconds old."""

    def __init__(self) -> None:
        self._devices: dict[int, tuple[float, int, bool]] = {}

    def hold(self, path: str, signature: Signature) -> bool:
        """Return whether a file with this signature keeps its present content as long as the signature stays the same."""
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
    """Magic number of a path's file system, and whether it is mounted read-only; ``(0, True)`` where that cannot be asked."""
    room = ctypes.create_string_buffer(256)
    if _libc.statfs(os.fsencode(path), room):
        return 0, True
    words = struct.unpack_from("@11l", room)
    return words[0] & 0xFFFFFFFF, bool(words[10] & _READ_ONLY)


# Above this, a file's signature represents its content: libraries of PyTorch have gigabytes.
_HASHED = 512 << 20
_PIECE = 2 << 20
# A state that was looked at so shortly ago is not looked at again (s).
_MEMORY = 2.0
# Bytes that are hashed in a second, roughly: a hash that cannot be kept holds for as long as making it may take from a run.
_SPEED = 10 << 20
# Where a bytecode cache says how Python checks it (PEP 552, https://peps.python.org/pep-0552/).
_CHECKED = "checked"
_USER = os.getuid()


class Files:
    """Looks at files; remembers hashes by signature, and for a moment also what it saw.

    Attributes
    ----------
    hashes : dict
        Hashes of content by signature, each with the marks of the text (`harness.engine.reads`), as long as timestamps tell of every change.
    fresh : set of str
        Paths whose hash was made here.
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
        """The state of a path, at most two seconds old.

        Returns
        -------
        str
            ``f:`` and the hash of a file's content, with the marks of its text after a ``:`` and ``+x`` where this user may run it, ``d`` for a
            directory (with a hash of its names if `listed`), ``-`` for nothing, ``e:`` and the error where this user may not read it, ``l`` with a
            hash of where a link leads for a path after `LINK`, mode, owner, size and time for one after `TIMES`, ``o`` for anything else.
        """
        return self._state(path, listed, time.monotonic())[1]

    def hash_of_set(
        self,
        name: str,
        paths: tuple[tuple[str, bool], ...],
        more: Callable[[tuple[tuple[str, bool], ...], list[str]], list[str]] = lambda _paths, _states: [],
    ) -> str:
        """`hash_of` the states of files that go by a name together, and of what `more` makes of them; as with `state`, nothing of it is older than two seconds."""
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
        """A state, and when it was looked at."""
        known = self._states.get((path, listed))
        if not known or now - known[0] >= _MEMORY:
            known = self._states[path, listed] = (now, self.current_state(path, listed)[0])
        return known

    def current_state(self, path: str, listed: bool = False) -> tuple[str, Signature | None]:
        """State and signature at this moment; None as the signature of nothing."""
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
        """Hash those of these files that no other thread is hashing: runners that start together have read the same libraries, and share the work."""
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
        """State at this moment of what was read with a signature; None where it is not what was read."""
        if read and not listed and not path.startswith(ASPECTS) and (digest := self._known(read)):
            try:
                if signature_of(found := os.stat(path)) == read:
                    return _rights(path, found) or f"f:{digest}{_runs(path, found)}"
            except (OSError, ValueError):
                pass  # it is gone
        state, signature = self.current_state(path, listed)
        return state if read in (signature, ()) or self._same_content(read, state) else None

    def _known(self, signature: Signature) -> str:
        """The hash under a signature that represents the content; else one that was made a moment ago, or nothing."""
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
        """The hash of a file, from memory or made now, or the error."""
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
        """State of a bytecode cache whose source counts: its content only if Python runs it without checking the source."""
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
            return _CHECKED  # Python makes one
        return known

    def _same_content(self, signature: Signature | None, state: str) -> bool:
        """Return whether a file had the content of this state when it had this signature, as far as that is known.

        A hard link to a file, which uv makes for a further environment, changes its signature and nothing else.
        """
        if not signature:
            return False
        digest = self.hashes.get(signature) or self._brief.get(signature, (0.0, ""))[1]
        return bool(digest) and state.removesuffix(_RUNS) == f"f:{digest}"

    def hash_of(self, states: Iterable[str]) -> str:
        """One hash over states in their order."""
        return hashlib.sha256("\0".join(states).encode()).hexdigest()


def _digest_of(path: str, size: int) -> str:
    """SHA-256 of a file and the marks of its text. It is read in large pieces: a thread that hashes waits for the interpreter's lock after each of them, as long as the others like."""
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
    """The marks of the text that a file with this state has."""
    return state.removesuffix(_RUNS).partition(":")[2].partition(":")[2] if state.startswith("f:") else ""


_RUNS = "+x"


def _runs(path: str, found: os.stat_result) -> str:
    """`_RUNS` where this user may run a file."""
    return _RUNS if found.st_mode & 0o111 and os.access(path, os.X_OK) else ""


def _rights(path: str, found: os.stat_result) -> str:
    """The error that this user gets when reading a file; empty if it can be read. Its hash may be known from another user."""
    own = found.st_uid == _USER and found.st_mode & 0o400
    return "" if own or os.access(path, os.R_OK) else f"e:{errno.EACCES}"


def _metadata(path: str) -> tuple[str, Signature | None]:
    """State and signature of a file by what stat(2) tells of it, but for its inode."""
    try:
        found = os.stat(path)
    except OSError:
        return "-", None
    fields = (found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns)
    return "t:" + ":".join(map(str, fields)), signature_of(found)


def signature_of(found: os.stat_result) -> Signature:
    """The identity of a file's state, without reading it."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _leading(path: str) -> tuple[str, Signature | None]:
    """State and signature of a symbolic link by where it leads."""
    try:
        to, found = os.fsencode(os.readlink(path)), os.lstat(path)
    except OSError:  # nothing, or no link any more
        return "-", None
    return f"l:{hashlib.sha256(to).hexdigest()}", (found.st_dev, found.st_ino, 0, sum_of_names([to]), 0)


def _listing(path: str, signature: Signature) -> tuple[str, Signature]:
    """State and signature by the names in a directory; Python's compiled modules come and go next to their sources."""
    try:
        names = sorted(os.fsencode(name) for name in os.listdir(path) if name != "__pycache__")
    except OSError as error:
        return f"e:{error.errno}", ()
    return f"d:{hashlib.sha256(bytes(1).join(names)).hexdigest()}", (*signature[:2], 0, sum_of_names(names), 0)


def sum_of_names(names: Iterable[bytes]) -> int:
    """The sum of names that ``native/reads.c`` computes as well (`sum_of` there)."""
    return sum(zlib.crc32(name) | zlib.adler32(name) << 32 for name in names) % (1 << 64) % (1 << 62)


_MOST = 1 << 14
"""Names that are remembered."""

_SYSTEM = ("/", "/usr", "/usr/local")
"""Prefixes of interpreters that hold the system's files, which have the same place everywhere."""

_INSTALLED = frozenset(("$CUMATRIX_HOME", "$CUMATRIX", "$PYTHON"))
"""Roots of what an installer puts there."""

_LIBRARY = re.compile(r"\blib(?:64)?/python3\.\d+/")
"""Libraries of an interpreter below the home, as uv and pyenv install it."""


class Roots:
    """Names of paths: the same file has the same name on every machine, wherever its folder is.

    Like ccache's ``base_dir`` (https://ccache.dev/manual/latest.html#config_base_dir): the content of a file counts, and not its
    home it lies. A path below none of the folders is its own name.

    Parameters
    ----------
    folders : Mapping[str, str]
        Absolute folder by name. Where links lead to it, what they lead to has a name of its own.
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
        """Those of this process.

        Parameters
        ----------
        python : str
            Interpreter of the environment under test.
        here : Path, optional
            The folder of the run; by default, the current one.
        more : Mapping, optional
            Further ones.
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
        """The name of an absolute path, or of one after one of `ASPECTS`."""
        # Cells read much the same files.
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
        """Return whether a file is the user's: its folder has a name, and belongs to no interpreter, toolkit or cumatrix itself."""
        return not self.name(plain(path)).startswith("/") and not self.is_installed(path)

    def is_installed(self, path: str) -> bool:
        """Return whether a file belongs to an interpreter, a toolkit or cumatrix itself."""
        root, _, rest = self.name(plain(path)).partition("/")
        return root.rstrip("~") in _INSTALLED or bool(_LIBRARY.search(rest))

    def path(self, name: str) -> str | None:
        """The path of a name; None where there is no such folder here."""
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
        """Names of the parts of a variable such as ``PATH``."""
        return os.pathsep.join(map(self.name, paths.split(os.pathsep)))
