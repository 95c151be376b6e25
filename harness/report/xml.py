"""Text that XML can hold."""

from __future__ import annotations

import re

from harness.report.text import clean

# XML 1.0 has no other characters, not even as references.
_NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def xml_text(text: str) -> str:
    """Clean, and without what XML cannot hold; escaping is left to the writer."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", clean(text))
