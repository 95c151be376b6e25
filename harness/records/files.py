"""Atomic file writes: a file is either complete or unchanged."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError
from harness.process_locks import holder, lock_exclusively
from harness.protocol.process_output import read_plain
from harness.records.plan import Inputs, Plan, inputs_path, plan_path, plans_json, read_inputs, read_plans
from harness.records.record import RecordError


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file, or none.

    All files are written and flushed under temporary names and then renamed into place. A full disk or an unwritable
    folder therefore leaves the earlier files unchanged.

    Parameters
    ----------
    contents : Mapping[Path, bytes]
        The content of each file. Missing folders are created.
    """
    written: list[tuple[Path, Path]] = []
    try:
        for path, data in contents.items():
            plain_file(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((Path(name), path))
            with named_errors(path), os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            # mkstemp makes private files, but these should be as readable as the user's other files.
            Path(name).chmod(0o666 & ~_umask())
        for temporary, path in written:
            temporary.replace(path)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise `UsageError` if a file cannot be written. The folder is created and the file stays unchanged.

    Call this before any long work: otherwise a run loses all its downloads and results at the end.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        plain_file(path)
        if path.exists():
            with path.open("ab"):
                pass
        else:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def plain_file(path: Path) -> None:
    """Raise `UsageError` if a path is not a regular file: a device or a pipe would be replaced or read without end."""
    try:
        there = path.stat()
    except OSError:
        return  # the writer reports missing files
    if not stat.S_ISREG(there.st_mode) and not stat.S_ISDIR(there.st_mode):  # opening a folder reports the error
        raise UsageError(f"{path} is not a regular file: name another one, such as results.jsonl")


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Add the file's name to system errors that have none, such as those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno:
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


FORMATS = ("ptx", "cubin", "object", "hsaco")
"""Artifact formats in records, with their file suffixes."""


class ArtifactFolder:
    """Artifacts stored by content. Programs and compilers cannot choose names in the folder.

    Several threads may use the object, and several processes may share the folder. A file is renamed into place once
    complete, and another writer of the same content writes the same bytes.

    Parameters
    ----------
    path : Path
        The folder.

    Attributes
    ----------
    unkept : Counter
        The number of artifacts that could not be stored, by reason.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unkept: Counter[str] = Counter()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Create the folder if it is missing.

        Raises
        ------
        UsageError
            If the path is not a folder or not writable.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot keep artifacts in {self.path}: {error.strerror}") from None
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise UsageError(f"cannot keep artifacts in {self.path}: it cannot be written")

    def file(self, kind: str, sha256: str) -> Path:
        """Return the path of an artifact by format and hash.

        Raises
        ------
        ValueError
            If the format or the hash is invalid: records may be foreign.
        """
        if kind not in FORMATS or len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise ValueError(f"no artifact: {kind!r}, {sha256!r}")
        return self.path / f"{sha256}.{kind}"

    def has(self, kind: str, sha256: str, size: int) -> bool:
        """Return whether an artifact is stored, by name and size in bytes."""
        try:
            found = self.file(kind, sha256).lstat()
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == size

    def keep(self, kind: str, sha256: str, data: bytes) -> None:
        """Store an artifact. On an error, `unkept` counts the reason and no partial file remains."""
        if self.has(kind, sha256, len(data)):
            return
        with self._lock:  # one at a time: writing reads the umask, which belongs to the whole process
            try:
                replace_files({self.file(kind, sha256): data})
            except (OSError, UsageError) as error:
                self.unkept[(isinstance(error, OSError) and error.strerror) or str(error)] += 1

    def note_unkept(self, problems: Mapping[str, int]) -> None:
        """Count the artifacts that another process could not store here, by reason."""
        with self._lock:
            self.unkept.update(problems)

    @property
    def problems(self) -> list[str]:
        """A sentence for each of the three most frequent reasons why artifacts were not stored."""
        return [f"not kept in {self.path} ({count} artifacts): {why}" for why, count in self.unkept.most_common(3)]

    def read(self, kind: str, sha256: str, most: int) -> bytes:
        """Read an artifact.

        Parameters
        ----------
        kind, sha256 : str
            The format and the hash.
        most : int
            The maximum size in bytes.

        Raises
        ------
        ValueError
            If the file is not that artifact or is larger. The message says which.
        OSError
            If the file cannot be read.
        """
        path = self.file(kind, sha256)
        data = read_plain(path, most, os.O_NOFOLLOW)  # symlinks are not followed
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ValueError(f"{path.name} is not what its name says: it was changed")
        return data


def busy(path: Path) -> RecordError:
    """Return the error for a file that a run is writing to."""
    return RecordError(
        f"{path}: another run is writing to it{holder(path)}: wait until that one has ended, or name another file of records"
    )


@contextmanager
def left_alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file while another file replaces it. Raise `RecordError` if a run is writing to it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is refused later: do not wait for its writer
    except OSError:
        yield  # the writer reports missing files
        return
    try:
        if not lock_exclusively(file):
            raise busy(path)
        yield
    finally:
        os.close(file)


class Sidecars:
    """The sidecar files of one ``.jsonl``.

    Parameters
    ----------
    path : Path
        The ``.jsonl``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: tuple[tuple[int, ...], list[Plan]] | None = None

    def plans(self) -> list[Plan]:
        """Return the plans. The file is read again only if another file replaced it: writers never modify it in place.

        Raises
        ------
        RecordError
            If the plans cannot be read.
        """
        state = self._state()
        if self._known is None or self._known[0] != state:
            self._known = (state, read_plans(plan_path(self.path)))
        return self._known[1]

    def is_of(self, run: str) -> bool:
        """Return whether the last plan belongs to this run. A plan file without the run's name is not parsed.

        Raises
        ------
        OSError, RecordError
            If the plans cannot be read.
        """
        if self._known is None and json.dumps(run).encode() not in plan_path(self.path).read_bytes():
            return False
        return bool(self.plans()[-1]["run"] == run)

    def keep_plans(self, plans: Sequence[Plan], records: bytes | None = None) -> None:
        """Write the plans, together with the file of records if `records` is given."""
        replace_files(
            {**({self.path: records} if records is not None else {}), plan_path(self.path): plans_json(plans)}
        )
        self._known = (self._state(), list(plans))

    def inputs(self) -> Inputs:
        """Return the input manifest of the records. A damaged manifest counts as missing and is written again."""
        try:
            return read_inputs([self.path])
        except RecordError:
            return Inputs()

    def keep_inputs(self, inputs: Inputs) -> None:
        """Write the input manifest, or remove it if it is empty."""
        inputs_file = inputs_path(self.path)
        if inputs:
            replace_files({inputs_file: inputs.to_json()})
        else:
            inputs_file.unlink(missing_ok=True)

    def _state(self) -> tuple[int, ...]:
        """Return the state that identifies a version of the plan file, or an empty tuple if there is none."""
        try:
            found = plan_path(self.path).stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
