"""Matplotlib's SVG, prepared for a page: no styles that a Content-Security-Policy forbids, ids of its own, a title."""

from __future__ import annotations

import re
from hashlib import blake2s
from xml.sax.saxutils import escape

_STYLE = re.compile(r' style="([^"]*)"')
_FONT = re.compile(r"(?:(?P<weight>bold|\d00) )?(?P<size>[\d.]+)px (?P<family>.+)")


def for_pages(svg: str, *, title: str, description: str, ink: str) -> str:
    """Rewrite an SVG.

    Parameters
    ----------
    svg : str
        What ``FigureCanvasSVG`` wrote.
    title, description : str
        What screen readers get: a name, and the numbers.
    ink : str
        The colour that becomes the page's own (``currentColor``).
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>\s*", "", text, count=1)
    text = _STYLE.sub(lambda match: _attributes(match[1]), text).replace(ink, "currentColor")
    text = _own_ids(text, blake2s(f"{title}\n{text}".encode(), digest_size=4).hexdigest())
    head, rest = text.split(">", 1)
    name = escape(title, {'"': "&quot;"})
    # What the style sheet said of everything, which these attributes hand down.
    head += f' stroke-linejoin="round" stroke-linecap="butt" role="img" aria-label="{name}"'
    return f"{head}>\n <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>{rest}"


def _attributes(style: str) -> str:
    """``fill: none; stroke: #000`` as attributes, which SVG has for all that matplotlib says."""
    found = []
    for item in style.replace("&quot;", "'").split(";"):
        name, _, value = (part.strip() for part in item.partition(":"))
        if not value:
            continue
        if name == "font" and (match := _FONT.fullmatch(value)):
            found += [
                ("font-size", match["size"]),
                ("font-family", match["family"]),
                ("font-weight", match["weight"] or ""),
            ]
        else:
            found.append((name, value))
    return "".join(f' {name}="{value}"' for name, value in found if value)


def _own_ids(text: str, prefix: str) -> str:
    """Keep referenced ids, with a prefix: a page may have several pictures."""
    used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda match: f' id="{prefix}-{match[1]}"' if match[1] in used else "", text)
    return re.sub(r'(url\(#|href="#)([\w-]+)', rf"\g<1>{prefix}-\g<2>", text)
