"""Files that are either whole or as they were."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file, or none.

    Everything is first written and flushed under temporary names; only then are the files renamed
    into place, so that a full disk or an unwritable folder leaves the earlier files alone.

    Parameters
    ----------
    contents : Mapping[Path, bytes]
        What each file shall hold. Folders that are missing are made.
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
            # mkstemp makes private files; these are as readable as any other file of the user's.
            Path(name).chmod(0o666 & ~_umask())
        for temporary, path in written:
            temporary.replace(path)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise `UsageError` where a file cannot be written; its folder is made, the file is left as it is.

    Call it before anything takes long: a run that downloads and compiles first loses all of it.
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
    """Raise `UsageError` where something is that is no file: a device or a pipe would be replaced, or read without an end."""
    try:
        there = path.stat()
    except OSError:
        return  # missing files are reported by the writer
    if not stat.S_ISREG(there.st_mode) and not stat.S_ISDIR(there.st_mode):  # of a folder, opening it says so
        raise UsageError(f"{path} is no file that can be kept: name another one, such as results.jsonl")


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Give errors of the system that know no file, such as those of a full disk, the name of this one."""
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
