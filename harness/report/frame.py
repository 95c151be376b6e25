"""The common frame of all pages, and the pages other than the matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The common frame of all pages.

    Parameters
    ----------
    title : str
        What the report is called.
    sections : sequence of (str, str)
        Name and title of the pages other than the matrix.
    address : str
        Where the report is published, with a ``/`` at its end; empty where that is not known.
    picture : str
        What the picture that shared links show says, in words.
    """

    title: str
    sections: Sequence[tuple[str, str]] = ()
    address: str = ""
    picture: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A page other than the matrix.

    Parameters
    ----------
    name : str
        Its file is ``NAME.html``, and so is its template.
    values : Mapping
        What its template shows.
    """

    name: str
    values: Mapping[str, Any]
