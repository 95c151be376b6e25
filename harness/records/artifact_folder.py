"""A folder of what compilers made (``--keep-artifacts``): each file under the SHA-256 of its content, which is what records have of it."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from harness.errors import UsageError
from harness.protocol.plain import read_plain
from harness.records.atomic import replace_files

FORMATS = ("ptx", "cubin", "object")
"""Artifact formats in records, with their file suffixes."""


class ArtifactFolder:
    """Artifacts kept by their content: no program and no compiler chooses a name here.

    Used by several threads at a time. Several processes may share a folder: a file is renamed into place when it is whole,
    are a folder: a file is renamed into place once complete, and another writer of the same content writes the same bytes.

    Parameters
    ----------
    path : Path
        The folder.

    Attributes
    ----------
    unkept : Counter
        Why something was not kept, and how many.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unkept: Counter[str] = Counter()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Make the folder where it is missing.

        Raises
        ------
        UsageError
            When it is no folder, or cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot keep artifacts in {self.path}: {error.strerror}") from None
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise UsageError(f"cannot keep artifacts in {self.path}: it cannot be written")

    def file(self, kind: str, sha256: str) -> Path:
        """Path of an artifact by format and hash, if it is kept.

        Raises
        ------
        ValueError
            When either is none: records may come from anywhere.
        """
        if kind not in FORMATS or len(sha256) != 64 or not set(sha256) <= set("0123456789abcdef"):
            raise ValueError(f"no artifact: {kind!r}, {sha256!r}")
        return self.path / f"{sha256}.{kind}"

    def has(self, kind: str, sha256: str, size: int) -> bool:
        """Return whether an artifact is kept, by name and size in bytes."""
        try:
            found = self.file(kind, sha256).lstat()
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == size

    def keep(self, kind: str, sha256: str, data: bytes) -> None:
        """Keep an artifact; where that fails, `unkept` says why, and nothing is half written."""
        if self.has(kind, sha256, len(data)):
            return
        with self._lock:  # one at a time: writing asks for the umask, which is the whole process's
            try:
                replace_files({self.file(kind, sha256): data})
            except (OSError, UsageError) as error:
                self.unkept[(isinstance(error, OSError) and error.strerror) or str(error)] += 1

    def note_unkept(self, problems: Mapping[str, int]) -> None:
        """Count what another process could not keep here, by the reason."""
        with self._lock:
            self.unkept.update(problems)

    @property
    def problems(self) -> list[str]:
        """A sentence for each reason why something was not kept, the commonest three."""
        return [f"not kept in {self.path} ({count} artifacts): {why}" for why, count in self.unkept.most_common(3)]

    def read(self, kind: str, sha256: str, most: int) -> bytes:
        """The content of an artifact.

        Parameters
        ----------
        kind, sha256 : str
            Which one.
        most : int
            Largest size that is read, in bytes.

        Raises
        ------
        ValueError
            When the file is not that artifact, or is larger; the message says so.
        OSError
            When it cannot be read.
        """
        path = self.file(kind, sha256)
        data = read_plain(path, most, os.O_NOFOLLOW)  # no link to elsewhere is followed
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ValueError(f"{path.name} is not what its name says: it was changed")
        return data
