"""``--good`` and ``--bad``: which releases lie between them, what good means then, and whether they contradict what is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from harness.bisection.seen import Lane, Seen
from harness.errors import PartUnavailable, UsageError, did_you_mean

History = Mapping[tuple[int, Lane], Seen]


def release_of(text: str, versions: Sequence[str], called: str) -> str:
    """The release that a user means; of a series (``12``, ``0.58``) the newest.

    Raises
    ------
    UsageError
        When there is none.
    """
    if text in versions:
        return text
    try:
        wanted = Version(text)
        found = [version for version in versions if Version(version).release[: len(wanted.release)] == wanted.release]
        found = found or [version for version in versions if Version(version) == wanted]
    except InvalidVersion:
        found = []
    if not found:
        raise UsageError(
            f"{called} has no release {text!r} among those that can be tried{did_you_mean(text, versions)}"
        )
    return found[-1]


@dataclass(frozen=True)
class Ends:
    """The releases that a user calls good and bad.

    Parameters
    ----------
    versions : tuple of str
        Releases from one to the other, oldest first; from the one that is named to the end where only one is.
    good, bad : int or None
        Their places among these; None for one that is not named.
    """

    versions: tuple[str, ...]
    good: int | None = None
    bad: int | None = None

    @classmethod
    def of(cls, versions: Sequence[str], good: str | None, bad: str | None, called: str) -> Ends:
        """Read what a user wrote.

        Raises
        ------
        UsageError
            On a release that is not known, and where fewer than two are left.
        """
        named = [release_of(text, versions, called) if text else None for text in (good, bad)]
        places = [versions.index(name) if name else None for name in named]
        if places[0] is not None and places[0] == places[1]:
            raise UsageError(f"--good and --bad both name {called} {named[0]}: there is nothing between")
        low = min([place for place in places if place is not None], default=0)
        high = max(place for place in places if place is not None) if None not in places else len(versions) - 1
        if places[0] is None and places[1] is not None:
            low, high = 0, places[1]
        if low == high and len(versions) > 1:
            missing = "--bad" if places[1] is None else "--good"
            raise UsageError(f"nothing lies beyond {called} {versions[low]}: name the other end with {missing}")
        return cls(tuple(versions[low : high + 1]), *(None if place is None else place - low for place in places))

    def good_of(self, seen: History, lane: Lane, each: Seen) -> bool | None:
        """Return whether an outcome is good: by the named releases if they differ, else by its case."""
        good, bad = (None if place is None else seen.get((place, lane)) for place in (self.good, self.bad))
        if good and not (bad and bad.key == good.key):
            return each.key == good.key
        if bad and self.good is None:
            return each.key != bad.key
        return each.good

    def contradiction(self, seen: History, reasons: Mapping[int, str]) -> str:
        """A sentence if the outcomes contradict the user; empty otherwise.

        Raises
        ------
        PartUnavailable
            When a release that the user names could not be tried.
        """
        for option, place in (("--good", self.good), ("--bad", self.bad)):
            if place is not None and place in reasons:
                raise PartUnavailable(
                    f"{self.versions[place]}, which {option} names, could not be tried: {reasons[place]}"
                )
        if self.good is None or self.bad is None:
            return ""
        lanes = {lane for _, lane in seen}
        pairs = [(seen.get((self.good, lane)), seen.get((self.bad, lane))) for lane in sorted(lanes)]
        known = [(good, bad) for good, bad in pairs if good and bad]
        if not known:
            return ""
        names = f"{self.versions[self.good]}, which --good names, and {self.versions[self.bad]}, which --bad names,"
        if all(good.key == bad.key for good, bad in known):
            return f"{names} show the same: {known[0][0].told}"
        changed = [(good, bad) for good, bad in known if good.key != bad.key]
        if all(good.good is False and bad.good is True for good, bad in changed):
            return (
                f"{names} are the other way round: the first is {changed[0][0].told}, the second {changed[0][1].told}"
            )
        return ""
