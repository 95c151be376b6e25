"""Addresses within a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from harness.matrix.axes import FIRST, PLACE, place_of


def matrix_link(**terms: str) -> str:
    """Address of the matrix, filtered; what `assets/address.js` reads."""
    query = " ".join(f'{field}:"{value.replace(chr(34), "")}"' for field, value in terms.items() if value)
    return f"matrix.html#q={quote(query, safe='/:,.')}"


def cell_link(cell: Mapping[str, Any]) -> str:
    """Address of a cell in the matrix, as `assets/matrix.js` spells it."""
    further = [key for key in PLACE if key not in FIRST]
    keys = PLACE if any(cell.get(key) for key in further) else FIRST
    parts = [str(part).replace("%", "%25").replace(";", "%3B") for part in place_of(cell, keys)]
    return f"matrix.html#cell={quote(';'.join(parts), safe='/:;,.=@')}"
