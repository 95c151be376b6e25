"""Kernels that a program has to contain, and their names in what was built."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN = 6
# No function of a class is a kernel, so all names around a kernel's own are namespaces
# (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
_NESTED = re.compile(r"_ZNK?")
_PLAIN = re.compile(r"_ZL?(?=\d)")
_LENGTH = re.compile(r"L?(\d{1,5})")
_TAG = re.compile(r"B(?=\d)")
_ANONYMOUS = "_GLOBAL__N"


def name_of(symbol: str) -> str:
    """Name of a kernel as its source has it, ``ns::reduce``, without parameters and template arguments; the symbol itself where it is not mangled.

    Unnamed namespaces are left out.
    """
    nested = _NESTED.match(symbol)
    start = nested or _PLAIN.match(symbol)
    if not start:
        return symbol
    names, place = [], start.end()
    while length := _LENGTH.match(symbol, place):
        place = length.end() + int(length[1])
        names.append(symbol[length.end() : place])
        while tag := _TAG.match(symbol, place):  # what Numba and inline namespaces of GCC add to a name
            length = _LENGTH.match(symbol, tag.end())
            place = length.end() + int(length[1]) if length else len(symbol)
        if not nested:
            break
    if not names or place > len(symbol):
        return symbol
    return "::".join(name for name in names if not name.startswith(_ANONYMOUS)) or symbol


@dataclass(frozen=True, kw_only=True)
class RequiredKernels:
    """Kernels without which a built program is not as expected.

    Parameters
    ----------
    names : tuple of str
        Names that must be there: of a symbol, or as the source has them, with or without their namespaces.
    count : int
        Number of kernels that must be there at least.
    """

    names: tuple[str, ...] = ()
    count: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[RequiredKernels]) -> RequiredKernels:
        """The requirements of several files of one program together."""
        each = list(parts)
        if len(each) == 1:
            return each[0]
        names = dict.fromkeys(name for part in each for name in part.names)
        return cls(names=tuple(names), count=sum(part.count or len(part.names) for part in each))

    def missing(self, symbols: Iterable[str]) -> str:
        """A sentence on missing kernels, given the symbols of an artifact; empty where none is missing."""
        there = list(symbols)
        found = [name_of(symbol) for symbol in there]
        known = {*there, *(name[place:] for name in found for place in _starts(name))}
        lacking = [name for name in self.names if name not in known]
        if lacking:
            what = f"kernel{'s' if len(lacking) > 1 else ''} {_listed(lacking)} {'are' if len(lacking) > 1 else 'is'} missing"
        elif len(there) < self.count:
            what = f"{len(there)} kernel{'' if len(there) == 1 else 's'} came out where at least {self.count} must"
        else:
            return ""
        return f"{what} (kernels there: {_listed(found)})"


def tensor_cores_of(kernels: Iterable[str | None]) -> str | None:
    """Instructions for tensor cores of several kernels together, ``HMMA IMMA``; empty without any, and None where that is not known."""
    each = list(kernels)
    found = sorted({name for names in each for name in (names or "").split()})
    return " ".join(found) if found or (each and None not in each) else None


def _starts(name: str) -> list[int]:
    """Beginnings of the name with and without its namespaces."""
    return [0, *(match.end() for match in re.finditer("::", name))]


def _listed(names: Iterable[str]) -> str:
    counts = Counter(names)
    shown = [f"{name} ({count} instances)" if count > 1 else name for name, count in counts.items()]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN])}{more}" or "none"
