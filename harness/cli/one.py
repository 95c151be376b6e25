"""The one cell that a user means: by its id, or by what no other id has."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import UsageError

_SHOWN = 4


def one_cell(what: str, ids: Sequence[str], *, who: str = "no cell") -> str:
    """The id that `what` is, or a part of, or all words of.

    Parameters
    ----------
    what : str
        As the user wrote it; the empty text is a part of every id.
    ids : sequence of str
        Ids of the cells that are there.
    who : str
        How the sentence begins that says that none is meant.

    Raises
    ------
    UsageError
        When none or several are meant.
    """
    words = what.split()
    found = (
        [each for each in ids if each == what]
        or [each for each in ids if what in each]
        or [each for each in ids if all(word in each for word in words)]
    )
    if len(found) == 1:
        return found[0]
    if not found:
        like = f"; ids look like {ids[0]}" if ids else ""
        raise UsageError(f"{who} of {len(ids)} has {what!r} in its id{like}")
    several = f"{len(found)} cells have {what!r} in their ids" if what else f"there are {len(found)} such cells"
    more = "; …" if len(found) > _SHOWN else ""
    raise UsageError(f"{several}, say more, as with --where: {'; '.join(found[:_SHOWN])}{more}")
