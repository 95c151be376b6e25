"""Files that are either whole or as they were."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Write every file, or none.

    Everything is written and flushed beside its destination first; only then are the files renamed
    into place, so that a full disk or an unwritable folder leaves the earlier files alone.

    Parameters
    ----------
    contents : Mapping[Path, bytes]
        What each file shall hold. Folders that are missing are made.
    """
    written: list[tuple[Path, Path]] = []
    try:
        for path, data in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            written.append((Path(name), path))
            with os.fdopen(handle, "wb") as file:
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
