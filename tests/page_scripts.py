"""Data that the page's files pass to its script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def handed_over(script: bytes | str) -> tuple[str, Any]:
    """Return name and value of a data file, as a browser reads them."""
    text = script.decode() if isinstance(script, bytes) else script
    found = re.fullmatch(r'cumatrix\.receive\("([\w-]+)","([A-Za-z0-9+/=]*)"\);\n', text)
    assert found is not None
    return found[1], json.loads(zlib.decompress(base64.b64decode(found[2])))
