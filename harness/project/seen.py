"""What `init` has seen in a project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Found:
    """What was found.

    Parameters
    ----------
    programs : list of dict
        Tables for ``[[programs]]``, with the keys of `harness.project.keys.NAMED`.
    why : list of str
        For each, in a few words, where it is from.
    left_out : list of str
        What was seen and is not in them, each with the reason.
    kinds : set of str
        Of what the programs are: ``cuda``, ``torch`` (with PyTorch's headers), ``python`` (Numba's kernels).
    architectures : list of str
        Targets that the project is built for, as ``sm_80``; empty where it does not say.
    """

    programs: list[dict[str, Any]] = field(default_factory=list)
    why: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    architectures: list[str] = field(default_factory=list)

    def add(self, table: dict[str, Any], why: str, kind: str = "") -> None:
        """Note a program of a kind, which its table tells where none is given; what no configuration can name is left out."""
        if not all(text.isprintable() for text in _texts(table)):
            self.left_out.append(f"{why}: a name or an option with control characters")
            return
        self.programs.append({name: value for name, value in table.items() if value})
        self.why.append(why)
        self.kinds.add(kind or ("torch" if "extension" in table or table.get("language") == "torch" else "cuda"))


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, names of tables included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from value
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts(each)
