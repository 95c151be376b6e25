"""Parsing of generated SVG and XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET


def text_of(element: ET.Element, path: str) -> str:
    """Return the text of the first element of a path, which must exist."""
    found = element.findtext(path)
    assert found is not None, f"no {path}"
    return found
