"""Topics of the library, in the order of lists (``topics.toml``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harness.tables import read_table


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: its folder's name, its title, and one line about it."""

    name: str
    title: str
    about: str


@cache
def library_topics() -> Mapping[str, Topic]:
    """Topics of the library by name."""
    return {table["name"]: Topic(**table) for table in read_table("cases/topics.toml")["topic"]}


def topic_rank(name: str) -> int:
    """Place of a topic in lists; other topics come after those of the library."""
    known = list(library_topics())
    return known.index(name) if name in library_topics() else len(known)
