"""Parameters of variants, and header libraries among them: what names of variants are made of, as dimensions of their own.

``bytes=49156,form=static`` and ``cutlass=4.2.0`` are parts of the variant's name, which identifies a cell. Pages filter and group
by each of them, and support statements speak of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal
from urllib.parse import quote

from harness.matrix.axes import FIRST, PLACE, natural_key, place_of, version_key
from harness.toolkits.header_libraries import LIBRARIES

_PAIR = r"([A-Za-z_][A-Za-z0-9_]*)=([^,=]*)"
_PAIRS = re.compile(_PAIR)
_WHOLE = re.compile(rf"{_PAIR}(?:,{_PAIR})*")
_OPTION = re.compile(rf"(?:^| )--library={_PAIR.replace(',', ' ')}(?= |$)")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
_RELEASE = re.compile(r"\d+(\.\d+)+")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter, whatever cases have it.

    Parameters
    ----------
    key : str
        Its name.
    kind : str
        The kind of its values, for ordering: ``number``, ``version`` (of a header library, for instance), ``word``.
    values : tuple of str
        In order.
    library : bool
        Whether it is the release of a header library.
    """

    key: str
    kind: Literal["number", "version", "word"]
    values: tuple[str, ...]
    library: bool

    @property
    def sort_key(self) -> Callable[[str], Any]:
        """Sorting key of a value."""
        return _KEYS[self.kind]

    def label(self, value: str) -> str:
        """``bytes=49156``, ``cutlass 4.2.0``."""
        return f"{self.key}{' ' if self.library else '='}{value}"

    def to_json(self) -> dict[str, Any]:
        """The parameter as the page's script needs it, like an axis (`harness.matrix.axes.Axis`)."""
        return {
            "key": self.key,
            "title": self.key,
            "side": "row",
            "about": "release of the header library" if self.library else "parameter of cases",
            "kind": self.kind,
            "filter": True,
            "prefix": self.label(""),
            "library": self.library,
        }


@lru_cache(maxsize=4096)
def parameters_of(variant: str) -> Mapping[str, str]:
    """Parameters by name, out of a variant's name; of the options of a program without a case its header libraries."""
    if _WHOLE.fullmatch(variant):
        return dict(_PAIRS.findall(variant))
    return {name: value for name, value in _OPTION.findall(variant) if name in LIBRARIES}


def parameters(variants: Iterable[str]) -> tuple[Parameter, ...]:
    """Every parameter of some variants: header libraries first, then by name."""
    values: dict[str, set[str]] = {}
    for variant in set(variants):
        for name, value in parameters_of(variant).items():
            values.setdefault(name, set()).add(value)
    names = sorted(values, key=lambda name: (name not in LIBRARIES, name))
    return tuple(_parameter(name, values[name]) for name in names)


def _parameter(name: str, values: set[str]) -> Parameter:
    library = name in LIBRARIES
    kind: Literal["number", "version", "word"] = "word"
    if library or all(map(_RELEASE.fullmatch, values)):
        kind = "version"
    if not library and all(map(_NUMBER.fullmatch, values)):
        kind = "number"
    return Parameter(key=name, kind=kind, values=tuple(sorted(values, key=_KEYS[kind])), library=library)


_KEYS: Mapping[str, Callable[[str], Any]] = {"number": float, "version": version_key, "word": natural_key}


def matrix_link(*, across: str = "", **values: str | Sequence[str]) -> str:
    """Address of the matrix, filtered by one or several values of each name; what `assets/address.js` reads."""
    parts = [_chosen(name, [of] if isinstance(of, str) else of) for name, of in values.items() if of]
    link = f"matrix.html#q={quote(' and '.join(parts), safe='/:,.=()')}"
    return f"{link}&across={across}" if across else link


def _chosen(name: str, values: Sequence[str]) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{name} == {texts[0]}" if len(texts) == 1 else f"{name} in ({', '.join(texts)})"


def cell_link(cell: Mapping[str, Any]) -> str:
    """Address of a cell in the matrix, as `assets/matrix.js` spells it."""
    further = [key for key in PLACE if key not in FIRST]
    keys = PLACE if any(cell.get(key) for key in further) else FIRST
    parts = [str(part).replace("%", "%25").replace(";", "%3B") for part in place_of(cell, keys)]
    return f"matrix.html#cell={quote(';'.join(parts), safe='/:;,.=@')}"
