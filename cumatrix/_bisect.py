"""Searches through releases and commits, as ``cumatrix bisect`` runs them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

from rich.console import Console

from cumatrix._run import SourcePath, TryOptions, Words, params_of, several, words_of
from harness.bisection.sentences import release_notes
from harness.cli.bisect import bisect as bisect_command
from harness.cli.bisect import find
from harness.cli.bisect_output import check_answered


@dataclass(frozen=True, kw_only=True)
class Border:
    """A change of the outcome between two releases or commits.

    Parameters
    ----------
    before, after : str
        The releases; the full names of commits with ``over="git:…"``.
    between : tuple of str
        Releases between `before` and `after` that could not be tried.
    kind : str
        ``broke``, ``fixed`` or ``changed``.
    name : str
        The variants, tools and targets that change; empty for all.
    sentence : str
        The change, in words.
    notes : str
        Address of the release notes; empty if unknown.
    """

    before: str
    after: str
    between: tuple[str, ...]
    kind: str
    name: str
    sentence: str
    notes: str


@dataclass(frozen=True, kw_only=True)
class Bisection:
    """The result of a search.

    Parameters
    ----------
    over : str
        The axis.
    borders : tuple of Border
        Every change of an outcome, oldest first.
    tried : tuple of str
        Releases that were tried, oldest first.
    skipped : Mapping[str, str]
        Releases that could not be tried, each with its reason.
    contradiction : str
        A sentence if an outcome contradicts ``good`` or ``bad``; else empty.
    """

    over: str
    borders: tuple[Border, ...]
    tried: tuple[str, ...]
    skipped: Mapping[str, str]
    contradiction: str


def bisect(
    what: SourcePath,
    *,
    over: str,
    good: str | None = None,
    bad: str | None = None,
    releases: Words | None = None,
    every: bool = False,
    build: str | None = None,
    build_timeout: float | None = None,
    cases: SourcePath = "cases",
    **options: Unpack[TryOptions],
) -> Bisection:
    """Find the releases or commits that changed an outcome, as ``cumatrix bisect`` does.

    Parameters
    ----------
    what : str or path
        A case, with ``[name=value]`` to select some of its variants, or a file.
    over : str
        The axis: ``"cuda"``, ``"headers"``, ``"cupy"``, ``"numba"``, ``"cutlass"`` and the like; ``"git:PATH"`` for the commits of a checkout.
    good, bad : str, optional
        A release or commit that is known to be good, and one that is known to be bad. A checkout requires `good`.
    releases : str or iterable of str, optional
        The releases to search; all by default.
    every : bool
        Whether to try every release.
    build : str, optional
        The command that builds a commit; the shell runs it in the checkout.
    build_timeout : float, optional
        Time limit of `build` in seconds.
    cases : path
        Folder of cases.
    **options
        See `Options` and `TryOptions`.

    Raises
    ------
    UsageError
        If an argument is invalid.
    PartUnavailable
        If no release could be tried.
    NothingToRun
        If no compiler answered.
    """
    words = words_of("bisect", dict(options), TryOptions.__annotations__)
    listed = ",".join(several(releases)) if releases else None
    named = {"good": good, "bad": bad, "releases": listed, "build": build}
    words += [f"--build-timeout={build_timeout}"] if build_timeout else []
    words += [f"--{name}={value}" for name, value in named.items() if value]
    words += ["--every"] if every else []
    words += [] if os.fspath(cases) == "cases" else [f"--cases={os.fspath(cases)}"]
    line = [f"--over={over}", *words, "--", os.fspath(what)]
    given = params_of(bisect_command, "bisect", line)
    found = find(given["what"], over, good, bad, given, ["bisect", *line], Console(quiet=True))
    if found.interrupted:
        raise KeyboardInterrupt
    check_answered(found)
    return Bisection(
        over=over,
        borders=tuple(
            Border(
                before=found.versions[each.border.before],
                after=found.versions[each.border.after],
                between=tuple(found.versions[place] for place in each.border.between),
                kind=each.kind,
                name=each.name,
                sentence=each.sentence,
                notes=release_notes(over, found.versions[each.border.after]),
            )
            for each in found.borders
        ),
        tried=tuple(found.versions[place] for place in found.tried if place not in found.reasons),
        skipped={found.versions[place]: why for place, why in found.reasons.items()},
        contradiction=found.contradiction,
    )
