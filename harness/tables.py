"""Tables of TOML that come with cumatrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_table(name: str) -> dict[str, Any]:
    """The content of a table.

    Parameters
    ----------
    name : str
        Its file, as seen from the package: ``toolkits/releases.toml``.
    """
    import tomllib  # imported late: help and lists of cases do not read tables

    return tomllib.loads((Path(__file__).parent / name).read_text("utf-8"))
