"""``bisect --over git:PATH``: ``git bisect run`` over a checkout, with this very command as the step."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.text import Text

from harness.bisection.commits import CommitLog, build, compare
from harness.bisection.ends import Ends
from harness.bisection.git import OTHER, SAME, UNTESTABLE, Checkout, run_alone
from harness.bisection.search import Border
from harness.bisection.seen import Lane
from harness.bisection.tell import Findings, groups_of, tell
from harness.diagnostics import one_line
from harness.errors import CumatrixError, PartUnavailable, UsageError
from harness.records import Record

# A shell between git and the step: git takes any code up to 127 for "bad", also that of a step that could not even begin.
_BETWEEN = f'cd "$0" || exit 255; "$@"; case $? in {SAME}) exit {SAME};; 10) exit {OTHER};; {UNTESTABLE}) exit {UNTESTABLE};; *) exit 255;; esac'
_CODES = {SAME: 0, OTHER: 10, UNTESTABLE: UNTESTABLE}


@dataclass(frozen=True)
class GitBisection:
    """What is asked of a checkout.

    Parameters
    ----------
    checkout : Checkout
        It.
    good, bad : str
        The commits that the user names so.
    old, new : str
        The same, the older one first.
    log : CommitLog
        What was seen of its commits.
    """

    checkout: Checkout
    good: str
    bad: str
    old: str
    new: str
    log: CommitLog

    @classmethod
    def of(cls, checkout: Checkout, good: str | None, bad: str | None, log: CommitLog) -> GitBisection:
        """Read what a user wrote.

        Raises
        ------
        UsageError
            On a commit that is not there, and on two of which neither comes after the other.
        """
        if not good:
            raise UsageError(
                "--over git: needs --good REV, a commit at which it is as it should be (and --bad REV, by default HEAD)"
            )
        first, second = checkout.commit(good), checkout.commit(bad or "HEAD")
        if first == second:
            raise UsageError(f"--good and --bad both name {first[:12]}: there is nothing between")
        if checkout.is_ancestor(first, second):
            return cls(checkout, first, second, first, second, log)
        if checkout.is_ancestor(second, first):
            return cls(checkout, first, second, second, first, log)
        raise UsageError(f"neither of {good} and {bad or 'HEAD'} comes after the other in {checkout.path}")


def step(
    checkout: Checkout,
    log: CommitLog,
    old: str,
    tried: Callable[[], Sequence[Record]],
    command: str,
    seconds: float,
    console: Console,
) -> int:
    """One step of ``git bisect run``: build what is checked out, try it, and compare with the older end.

    Parameters
    ----------
    checkout, log
        Where, and what is known already.
    old : str
        The commit to compare with; empty to have this one tried only.
    tried : callable
        Compiles the cells.
    command : str
        The project's own command that builds it; empty for none.
    seconds : float
        How long that may take.
    """
    commit, began = checkout.git("rev-parse", "HEAD"), time.monotonic()
    name = checkout.subjects([commit])[commit]
    if log.seen(commit) is None:
        why, records = build(command, checkout.path, seconds) if command else "", []
        try:
            records = list(tried()) if not why else []
        except CumatrixError as error:
            why = str(error)
        log.keep(commit, records, why or next((each["reason"] for each in records if each["reason"]), ""))
    found = log.seen(commit) or {}
    told = ", ".join(dict.fromkeys(seen.told for seen in found.values())) or f"cannot be tested: {log.reason(commit)}"
    console.print(Text(one_line(f"  {name}: {told}  ({time.monotonic() - began:.1f} s)", 300)), soft_wrap=True)
    if not found:
        return _CODES[UNTESTABLE]
    return _CODES[compare(log.seen(old) or {}, found)] if old else 0


def search(asked: GitBisection, argv: Sequence[str], console: Console) -> tuple[list[tuple[str, str]], bool]:
    """Every border as the commits before and after it, and whether the search was interrupted."""
    borders: list[tuple[str, str]] = []
    checkout, log = asked.checkout, asked.log
    chain = checkout.between(asked.old, asked.new)
    try:
        with checkout.bisecting():
            began = time.monotonic()
            for commit in (asked.old, asked.new):
                checkout.git("checkout", "--quiet", "--detach", commit)
                _look(asked, commit, argv)
            each, steps = (time.monotonic() - began) / 2, max(0, (len(chain) - 2)).bit_length()
            console.print(
                f"{len(chain) - 2} commits between: about {steps} steps, about {max(1, round(each * steps))} s for a border",
                markup=False,
            )
            old = asked.old
            while compare(log.seen(old) or {}, log.seen(asked.new) or {}) == OTHER:
                border = _border(asked, chain, old, argv)
                borders.append(border)
                old = border[1]
    except KeyboardInterrupt:
        return borders, True
    return borders, False


def _look(asked: GitBisection, commit: str, argv: Sequence[str]) -> None:
    """Have one of the ends tried, which has to be possible."""
    run_alone(_step(asked, "", argv))
    if not asked.log.seen(commit):
        which = "--good" if commit == asked.good else "--bad"
        raise PartUnavailable(
            f"{commit[:12]}, which {which} names, cannot be tested: {asked.log.reason(commit) or 'its step came to no end'}"
        )


def _step(asked: GitBisection, old: str, argv: Sequence[str]) -> list[str]:
    program = [
        sys.executable,
        "-P",
        "-c",
        "from harness.cli import main; main()",
        *argv,
        "--git-step",
        str(asked.log.folder),
        old,
    ]
    return ["sh", "-c", _BETWEEN, os.getcwd(), *program]


def _border(asked: GitBisection, chain: Sequence[str], old: str, argv: Sequence[str]) -> tuple[str, str]:
    """The first commit that is other than `old`, and the last one before that is as that."""
    log, place = asked.log, {commit: number for number, commit in enumerate(chain)}
    found = asked.checkout.first_other(old, asked.new, _step(asked, old, argv))
    before = log.seen(old) or {}
    other = [commit for commit in found if (seen := log.seen(commit)) and compare(before, seen) == OTHER]
    after = min(other or [asked.new], key=lambda commit: place[commit])
    same = [commit for commit in chain[: place[after]] if (seen := log.seen(commit)) and compare(before, seen) == SAME]
    return max(same, key=lambda commit: place[commit]), after


def findings_of(asked: GitBisection, over: str, borders: Sequence[tuple[str, str]], interrupted: bool) -> Findings:
    """What was found, as it is shown."""
    log = asked.log
    chain = asked.checkout.between(asked.old, asked.new)
    tried = [place for place, commit in enumerate(chain) if log.seen(commit) is not None]
    called = asked.checkout.subjects([chain[place] for place in tried] or chain[:1])
    names = [called.get(commit, commit[:12]) for commit in chain]
    seen = {(place, lane): each for place in tried for lane, each in (log.seen(chain[place]) or {}).items()}
    place_of = {commit: place for place, commit in enumerate(chain)}
    ends = Ends(tuple(names), place_of[asked.good], place_of[asked.bad])

    def borders_of(lane: Lane) -> list[Border]:
        pairs = [Border(place_of[before], place_of[after]) for before, after in borders]
        return [
            pair
            for pair in pairs
            if (pair.before, lane) in seen
            and (pair.after, lane) in seen
            and seen[pair.before, lane].key != seen[pair.after, lane].key
        ]

    good_of = partial(ends.good_of, seen)
    groups = groups_of(seen, good_of)
    reasons = {place: log.reason(chain[place]) for place in tried if not log.seen(chain[place])}
    return Findings(
        over=over,
        versions=chain,
        names=names,
        called=str,
        tried=tried,
        reasons=reasons,
        groups=groups,
        borders=tell(names, groups, borders_of, str, good_of),
        contradiction="" if interrupted else ends.contradiction(seen, reasons),
        interrupted=interrupted,
    )
