"""Copying the library of cases that comes with cumatrix to where users change and run it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harness.cases.bundled import packaged_cases
from harness.cases.discovery import find_cases
from harness.errors import UsageError
from harness.process_locks import HeldFolder


def copy_cases(folder: Path) -> int:
    """Copy the library of cases to a folder that is not there yet, or empty.

    Parameters
    ----------
    folder : Path
        Where the topics come to lie; made with its parents.

    Returns
    -------
    int
        How many cases it has.

    Raises
    ------
    UsageError
        When something is there already, which is left as it is, or nothing can be written.
    """
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already: name another folder, as in `cumatrix cases copy other-cases`")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: an interrupted copy would look like a library with fewer cases.
        with HeldFolder(folder.parent, ".cumatrix-") as scratch:
            whole = Path(scratch, "cases")
            _copy(packaged_cases(), whole)
            count = len(find_cases(whole))
            whole.rename(folder)
    except OSError as error:
        raise UsageError(f"cannot copy the cases to {folder}: {error.strerror or error}") from None
    return count


def _copy(origin: Path, target: Path) -> None:
    """Copy files, without those of Python and editors, and without their write permissions for others."""
    for path in origin.rglob("*"):
        name = path.relative_to(origin)
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in name.parts):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
