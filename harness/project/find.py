"""Where a project's configuration lies, as seen from the folder that a command runs in."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.errors import UsageError

OWN, PYPROJECT = "cumatrix.toml", "pyproject.toml"
"""Where a configuration stands: in a file of its own, or in one that a project has already."""

VARIABLE = "CUMATRIX_CONFIG"
"""Names the file, or ``none`` for no configuration."""

_FIRST = 1_000_000  # bytes of a pyproject.toml that are looked at
# Where a table for cumatrix can begin, in any spelling; what else begins so is told apart by reading the file.
_TABLE = re.compile(
    rb"""^(?:\xef\xbb\xbf)?[ \t]*\[{0,2}[ \t]*["']?tool["']?[ \t]*(?:\.[ \t]*["']?cumatrix\b|[\]=])""",
    re.MULTILINE,
)


def found(start: Path) -> Path | None:
    """The file of `start`, or of the nearest folder above it that has one; a repository's top folder and the home folder are the last looked into.

    Raises
    ------
    UsageError
        Where ``CUMATRIX_CONFIG`` names no file, or a folder has two configurations.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        if named != "none" and not Path(named).is_file():
            raise UsageError(f"{VARIABLE} names {named}, and there is no such file")
        return None if named == "none" else Path(named).absolute()
    for folder in (start, *start.parents):
        own, shared = folder / OWN, folder / PYPROJECT
        has_own, has_shared = own.is_file(), _configures(shared)
        if has_own and has_shared:
            from harness.cases.toml import failure

            raise failure(
                os.path.relpath(shared, start),
                f"[tool.cumatrix] stands here, and there is {OWN} beside it: keep one of them",
            )
        if has_own or has_shared:
            return own if has_own else shared
        if (folder / ".git").exists() or folder == Path.home():
            break
    return None


def _configures(path: Path) -> bool:
    """Whether a ``pyproject.toml`` has a table for cumatrix; one that is broken elsewhere is no business of ours."""
    try:
        with open(path, "rb") as file:
            data = file.read(_FIRST)
    except OSError:
        return False
    if not _TABLE.search(data):
        return False
    import tomllib

    try:
        tools = tomllib.loads(data.decode("utf-8-sig")).get("tool", {})
    except (ValueError, RecursionError):
        return b"[tool.cumatrix" in data  # then its errors are told
    return isinstance(tools, dict) and "cumatrix" in tools
