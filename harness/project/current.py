"""The configuration of the current folder; without one, no reader is imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.project.discovery import found

if TYPE_CHECKING:
    from harness.model import Case
    from harness.project.config import Config


def here() -> Config:
    """The configuration that holds in the current folder; an empty one where there is none.

    Raises
    ------
    CaseError
        With everything that is wrong with the file, each with file, line and key.
    UsageError
        Where the variable names no file.
    """
    path = found(Path.cwd())
    from harness.project.config import NOTHING, read_config  # as long an import as a whole command

    return read_config(path) if path else NOTHING


def programs_here() -> list[Case]:
    """The programs that the configuration in the current folder names; raises as `here`, and `CaseError` where one of them cannot be used."""
    if found(Path.cwd()) is None:
        return []
    from harness.project.programs import configured

    return configured(here())
