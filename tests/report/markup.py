"""Reading SVG and XML that was made."""

from __future__ import annotations

import xml.etree.ElementTree as ET


def text_of(element: ET.Element, path: str) -> str:
    """Text of the first element of that path, which has to be there."""
    found = element.findtext(path)
    assert found is not None, f"no {path}"
    return found
