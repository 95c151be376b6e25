"""The environments under test of one run: one per release, Python and major CUDA release in ``--with``."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

from packaging.version import Version

from harness.engine.environment import Environment, look
from harness.environments.dev_builds import Development, build, split_with
from harness.environments.index import Index
from harness.environments.releases import (
    OWN,
    NoSuchRelease,
    Published,
    Python,
    Wanted,
    choose,
    parse_pythons,
    parse_with,
    published,
)
from harness.environments.requirements import Recipe, recipes
from harness.environments.store import EnvironmentStore, Resolved
from harness.errors import PartUnavailable
from harness.git import build_of, with_local
from harness.libraries import DEFAULT_TOOLKIT, LIBRARIES, runtime_wheel
from harness.model import ToolkitRef
from harness.protocol.messages import Distribution
from harness.toolkits import RELEASES, parse_toolkits
from harness.toolkits.releases import release_of
from harness.toolkits.store import data_folder

_AT_ONCE = 8


def line_up(
    wanted: Sequence[str], toolkits: str | None, python: str | None = None, *, offline: bool = False
) -> tuple[Environment, ...]:
    """Resolve the environments of ``--with`` without creating them.

    Parameters
    ----------
    wanted : sequence of str
        Values as users write them: ``cupy=12,13.0``.
    toolkits : str or None
        The axis of CUDA releases; None selects one by each library release's date.
    python : str or None
        Versions of Python (``3.9,3.13``). None uses cumatrix's own interpreter, or another installed one if the release
        has no wheel for it.
    offline : bool
        Query no index.

    Raises
    ------
    UsageError
        If a value is invalid or names no release.
    PartUnavailable
        If an index cannot be queried.
    """
    if not wanted:
        return ()
    index = Index(data_folder() / "index", offline=offline)
    store = EnvironmentStore(offline=offline)
    store.sweep()
    refs = parse_toolkits(toolkits) if toolkits else []
    pythons = parse_pythons(python) if python else None
    chosen = _chosen(_together(map(parse_with, wanted)), index, toolkits, python)
    found = [recipe for release in chosen for recipe in recipes(release, majors_of(release, refs), pythons)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        planned = list(pool.map(lambda recipe: plan_environment(recipe, store), found))
    several = pythons is not None
    return tuple(
        replace(
            each,
            toolkits=toolkits_of(each, refs),
            mark=f"python{each.resolved.recipe.python.minor}" if several else "",
        )
        for each in planned
        if each.resolved
    )


def _chosen(wanted: Sequence[Wanted], index: Index, toolkits: str | None, python: str | None) -> list[Published]:
    """Return the selected releases.

    Offline, list every unresolved release at once with the command that would fetch it.
    """
    found: list[Published] = []
    unknown: list[Wanted] = []
    for each in wanted:
        releases = published(each.library, index)
        try:
            found += choose(each, releases)
        except (NoSuchRelease, PartUnavailable):
            if not index.offline:
                raise
            unknown.append(each)
    if unknown:
        words = [
            *map(str, unknown),
            *(["-t", toolkits] if toolkits else []),
            *(["--python", python] if python else []),
        ]
        raise PartUnavailable(
            f"--offline queries no index, and the index cache lacks {', '.join(map(str, unknown))}: run `cumatrix libraries install {shlex.join(words)}`"
        )
    return found


def _together(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Merge repeated ``--with`` of one library."""
    words: dict[str, tuple[str, ...]] = {}
    for each in wanted:
        words[each.library] = (*words.get(each.library, ()), *each.words)
    return [Wanted(library, of_it) for library, of_it in words.items()]


def majors_of(release: Published, refs: Sequence[ToolkitRef]) -> list[int]:
    """Return the major CUDA releases for a library release: the requested ones, or the one current at its date."""
    if refs:
        return sorted({_major(ref.release) for ref in refs})
    return [_major(toolkit_of_time(release.date.date() if release.date else None, release.majors))]


def plan_environment(recipe: Recipe, store: EnvironmentStore) -> Environment:
    """Resolve a recipe and return its environment, created or not; without a solution, its library is broken."""
    distributions = {recipe.distribution: Distribution(recipe.version)}
    resolved, problem = Resolved(recipe=recipe, lock=""), recipe.problem or recipe.refused
    if not problem:
        try:
            resolved = store.resolve(recipe)
            roots = {name for library in LIBRARIES.values() for name in library.distributions}
            distributions = {
                name: Distribution(version, root=name in roots) for name, version in resolved.packages.items()
            }
        except PartUnavailable as error:
            problem = str(error)
    made = store.find(resolved) if not problem else None
    return Environment(
        name=recipe.name,
        python=made.python if made else "",
        version=recipe.python.version,
        distributions=distributions,
        broken={recipe.distribution: problem} if problem else {},
        resolved=resolved,
    )


def toolkits_of(environment: Environment, refs: Sequence[ToolkitRef]) -> tuple[ToolkitRef, ...]:
    """Return the CUDA releases to test in an environment: the requested ones that it supports, or the default one."""
    assert environment.resolved is not None
    recipe = environment.resolved.recipe
    own = bundled_tools(recipe.library, recipe.version)
    if refs:
        return tuple(ref for ref in refs if (ref == own if ref.bundled else recipe.cuda in (0, _major(ref.release))))
    release = default_toolkit(environment)
    return (own or ToolkitRef(release=release, headers=release),)


def bundled_tools(library: str, version: str) -> ToolkitRef | None:
    """Return the CUDA tools bundled with a library's release; None if it uses those of a toolkit."""
    release = LIBRARIES[library].bundled_with(version) if library else ""
    return ToolkitRef(release=release, headers=release, bundled=True) if release else None


def toolkit_of_time(day: date | None, majors: Sequence[int]) -> str:
    """Return the newest CUDA release on a date, up to `DEFAULT_TOOLKIT`, among a library's major releases."""
    if day is None:
        fitting = [name for name in RELEASES if not majors or _major(name) in majors]
        return DEFAULT_TOOLKIT if DEFAULT_TOOLKIT in fitting else fitting[-1]
    return release_of(day, majors, DEFAULT_TOOLKIT)


def _major(release: str) -> int:
    return int(release.split(".")[0])


def default_toolkit(environment: Environment) -> str:
    """Return the CUDA release to test an environment with by default.

    An existing environment uses a release that its CuPy or PyTorch supports. An environment for a library release uses
    a CUDA release current at its date.
    """
    for library in LIBRARIES.values():
        found = environment.version_of(*library.distributions)
        if found and library.by_major and not environment.resolved and not environment.version_of(*library.brought_by):
            of_release = environment.version_of(library.by_major)
            wanted = _major(of_release[1]) if of_release else 0
            if wanted in library.majors and wanted != _major(DEFAULT_TOOLKIT):
                return next(name for name in RELEASES if _major(name) == wanted)
        if not found or not library.follows_runtime:
            continue
        fits = library.distributions[found[0]]
        major = fits.split(".")[0]
        # If wheels bring CUDA's headers, the library is tested with their release.
        wheels = [runtime_wheel(int(major))] if fits else LIBRARIES["nvidia-cuda-runtime"].distributions
        wheel = environment.version_of(*wheels)
        release = ".".join(wheel[1].split(".")[:2]) if wheel else ""
        if release in RELEASES and (not fits or release.split(".")[0] == major):
            return release
        if fits and not environment.resolved:
            return fits
    if environment.resolved:
        recipe = environment.resolved.recipe
        if own := bundled_tools(recipe.library, recipe.version):
            return own.release
        if (of_wheel := LIBRARIES[recipe.library].release_of(recipe.version)) and of_wheel.toolkit:
            return of_wheel.toolkit
        for first, end, release in LIBRARIES[recipe.library].carries:
            if _major(release) == recipe.cuda and Version(first) <= Version(recipe.version) < Version(end):
                return release
        day = date.fromisoformat(recipe.released) if recipe.released else None
        return toolkit_of_time(day, [recipe.cuda] if recipe.cuda else [])
    return DEFAULT_TOOLKIT


_DIGITS = 4


def requested_environments(
    wanted: Sequence[str],
    toolkits: str | None,
    python: str | None = None,
    *,
    offline: bool = False,
    there: Environment | None = None,
) -> tuple[Environment, ...]:
    """Return the environments of ``--with``.

    Environments of releases are created later, when their cells are known. Environments of development builds are
    created here, because a build's commit is known only after installation. If a build fails, its library is broken and
    its cells become ``unavailable``.

    Parameters
    ----------
    wanted, toolkits, python, offline
        See `harness.engine.environments.line_up`.
    there : Environment, optional
        An existing environment (``--python PATH``); its libraries are tested in addition to those in `wanted`.

    Raises
    ------
    UsageError
        If a value is invalid or names nothing that exists.
    PartUnavailable
        If an index or a repository cannot be queried.
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
            build = Development(text="", library=library)
            found.append(replace(there, only=library, toolkits=_toolkits_of(there, build, refs)))
    return tuple(_distinguished(found))


def _existing(wanted: Development) -> Environment:
    environment = look(wanted.python)
    names = LIBRARIES[wanted.library].distributions
    if environment.version_of(*names):
        return environment
    reason = f"{wanted.text}: {wanted.python} has no {wanted.library}"
    return replace(environment, broken=dict.fromkeys(names, reason))


def _made(wanted: Development, python: Python, store: EnvironmentStore) -> Environment:
    try:
        made = look(build(wanted, python, store).python)
        # The installation has the commit; only the repository has the history.
        origins = {
            name: replace(origin, number=wanted.number) if origin.commit == wanted.commit else origin
            for name, origin in made.origins.items()
        }
        return replace(made, origins=origins) if wanted.number else made
    except PartUnavailable as error:
        # The version of a failed build is unknown; its identity distinguishes it from other builds.
        digest = hashlib.sha256(wanted.identity.encode("utf-8", "surrogateescape")).hexdigest()
        return Environment(
            name="",
            python=python.path,
            version=python.version,
            distributions={
                wanted.distribution: Distribution(
                    build_of("0", commit=wanted.commit, number=wanted.number, digest=digest)
                )
            },
            broken={wanted.distribution: str(error)},
        )


def _toolkits_of(environment: Environment, wanted: Development, refs: Sequence[ToolkitRef]) -> tuple[ToolkitRef, ...]:
    """Return the CUDA releases to test a build with: the requested ones that it supports, or the default one."""
    found = environment.version_of(*LIBRARIES[wanted.library].distributions)
    own = bundled_tools(wanted.library, found[1]) if found else None
    if own and (not refs or own in refs):
        refs = [own, *(ref for ref in refs if not ref.bundled)]
    if not refs:
        release = default_toolkit(environment)
        return (ToolkitRef(release=release, headers=release),)
    major = replace(wanted, distribution=found[0]).cuda if found else 0
    return tuple(ref for ref in refs if major in (0, int(ref.release.split(".")[0])))


def _distinguished(environments: Iterable[Environment]) -> list[Environment]:
    """Return environments with unique names, without duplicates; mark builds that share one version number."""
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
