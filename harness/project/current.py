"""The configuration of the current folder. If there is none, no reader is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.project.discovery import found

if TYPE_CHECKING:
    from harness.model import Case
    from harness.project.config import Config


def here() -> Config:
    """Return the configuration of the current folder; an empty one if there is none.

    Raises
    ------
    CaseError
        With every error in the file, each with file, line and key.
    UsageError
        If ``CUMATRIX_CONFIG`` names no file.
    """
    path = found(Path.cwd())
    from harness.project.config import NOTHING, read_config  # this import takes as long as a whole command

    return read_config(path) if path else NOTHING


def programs_here() -> list[Case]:
    """Return the programs that the configuration of the current folder names.

    Raises
    ------
    CaseError
        As `here`, and if a program cannot be used.
    UsageError
        As `here`.
    """
    if found(Path.cwd()) is None:
        return []
    from harness.project.programs import configured

    return configured(here())
