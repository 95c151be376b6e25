"""Environments under test that hold development builds, beside those of releases (`harness.engine.line_up`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.checkouts import build_of, with_local
from harness.engine.environment import Environment, look
from harness.engine.line_up import default_toolkit, line_up
from harness.environments.builds import build
from harness.environments.development import Development, split_with
from harness.environments.pythons import OWN, Python, parse_pythons
from harness.environments.store import EnvironmentStore
from harness.errors import PartUnavailable
from harness.libraries import LIBRARIES
from harness.model import ToolkitRef
from harness.protocol.probes import Distribution
from harness.toolkits import parse_toolkits

_DIGITS = 4


def others_of(
    wanted: Sequence[str],
    toolkits: str | None,
    python: str | None = None,
    *,
    offline: bool = False,
    there: Environment | None = None,
) -> tuple[Environment, ...]:
    """The environments that ``--with`` stands for: releases, which are made when their cells are known, and development builds, which are made here.

    What a build is, its commit above all, is known when it is there. One that cannot be built is broken, and its cells become ``unavailable``.

    Parameters
    ----------
    wanted, toolkits, python, offline
        See `harness.engine.line_up.line_up`.
    there : Environment, optional
        One that is there and was named beside (``--python PATH``): its libraries are tried beside those that are `wanted`.

    Raises
    ------
    UsageError
        On what cannot be read, or names nothing that is there.
    PartUnavailable
        When an index or a repository cannot be asked.
    """
    releases, builds = split_with(wanted, Path.cwd(), offline=offline)
    found = list(line_up(releases, toolkits, python, offline=offline))
    refs = parse_toolkits(toolkits) if toolkits else []
    pythons = parse_pythons(python) if python and builds else None
    store = EnvironmentStore(offline=offline)
    for each in builds:
        for interpreter in [None] if each.python else pythons or [OWN]:
            made = _existing(each) if interpreter is None else _made(each, interpreter, store)
            mark = f"python{interpreter.minor}" if interpreter and pythons else ""
            found.append(replace(made, only=each.library, toolkits=_toolkits_of(made, each, refs), mark=mark))
    for library in dict.fromkeys(each.library for each in found) if there else ():
        assert there is not None
        if there.version_of(*LIBRARIES[library].distributions):
            asked = Development(text="", library=library)
            found.append(replace(there, only=library, toolkits=_toolkits_of(there, asked, refs)))
    return tuple(_told_apart(found))


def _existing(wanted: Development) -> Environment:
    environment = look(wanted.python)
    names = LIBRARIES[wanted.library].distributions
    if environment.version_of(*names):
        return environment
    reason = f"{wanted.text}: {wanted.python} has no {wanted.library}"
    return replace(environment, broken=dict.fromkeys(names, reason))


def _made(wanted: Development, python: Python, store: EnvironmentStore) -> Environment:
    try:
        return look(build(wanted, python, store).python)
    except PartUnavailable as error:
        # Of its number no more is known than which build it was to be.
        digest = hashlib.sha256(wanted.identity.encode("utf-8", "surrogateescape")).hexdigest()
        return Environment(
            name="",
            python=python.path,
            version=python.version,
            distributions={wanted.distribution: Distribution(build_of("0", digest=digest))},
            broken={wanted.distribution: str(error)},
        )


def _toolkits_of(environment: Environment, wanted: Development, refs: Sequence[ToolkitRef]) -> tuple[ToolkitRef, ...]:
    """The CUDA releases that a build is tried with: those asked for that its distribution is for, else the one that fits."""
    found = environment.version_of(*LIBRARIES[wanted.library].distributions)
    if not refs:
        release = default_toolkit(environment)
        return (ToolkitRef(release=release, headers=release),)
    major = replace(wanted, distribution=found[0]).cuda if found else 0
    return tuple(ref for ref in refs if major in (0, int(ref.release.split(".")[0])))


def _told_apart(environments: Iterable[Environment]) -> list[Environment]:
    """Environments with names of their own, and marks where two have builds of one number; one that is named twice counts once."""
    found: list[Environment] = []
    taken: set[tuple[str, str, str, ToolkitRef]] = set()
    same: set[tuple[str, str]] = set()
    for each in environments:
        if each.resolved:
            found.append(each)
            taken.update(_places(each))
        elif (each.only, each.python) not in same or each.broken:
            same.add((each.only, each.python))
            digest = hashlib.sha256(each.python.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]
            marks = (
                ".".join(filter(None, (each.mark, *words)))
                for words in [(), *(("env", f"{digest}{n or ''}") for n in range(99))]
            )
            marked = next(made for mark in marks if taken.isdisjoint(_places(made := replace(each, mark=mark))))
            taken.update(_places(marked))
            number = with_local(
                marked.build_of(*LIBRARIES[each.only].distributions) or "none", filter(None, [marked.mark])
            )
            found.append(replace(marked, name=f"{each.only}-{number}"))
    return found


def _places(environment: Environment) -> set[tuple[str, str, str, ToolkitRef]]:
    number = environment.build_of(*LIBRARIES[environment.library].distributions)
    return {(environment.library, number, environment.mark, ref) for ref in environment.toolkits}
