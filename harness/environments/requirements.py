"""Requirements of an environment: one release of one library, for one Python and one major CUDA release."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from harness.environments.releases import OWN, Published, Python, pythons
from harness.libraries import LIBRARIES, Release


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An environment to resolve with uv.

    Parameters
    ----------
    name : str
        The environment's name in records: ``cupy-13.6.0-cuda12``.
    library : str
        Name of the library under test (`harness.libraries.LIBRARIES`), whose backends run in it.
    version : str
        The requested version.
    distribution : str
        The distribution to install: ``cupy-cuda12x``.
    requirements : tuple of str
        All requirements in pip's syntax.
    python : Python
        The interpreter.
    before : str
        Time in ISO 8601; uv ignores later uploads. Empty if the index provides no dates.
    cuda : int
        The major CUDA release that the library loads; 0 for any.
    released : str
        Release date; empty if the index provides no dates.
    problem : str
        Why the environment cannot be created, which makes its cells ``unavailable``; empty if it can.
    refused : str
        Why the combination does not exist, which makes its cells ``unsupported``; empty if it exists.
    """

    name: str
    library: str
    version: str
    distribution: str
    requirements: tuple[str, ...]
    python: Python = OWN
    before: str = ""
    cuda: int = 0
    released: str = ""
    problem: str = ""
    refused: str = ""

    @property
    def key(self) -> str:
        """Hash of the inputs of the resolution."""
        words = [self.requirements, self.before, self.python.path, self.python.version]
        return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:24]


def recipes(release: Published, majors: Iterable[int], chosen: Sequence[Python] | None = None) -> list[Recipe]:
    """Return the environments of a release.

    Parameters
    ----------
    release : Published
        The release.
    majors : iterable of int
        The requested major CUDA releases.
    chosen : sequence of Python, optional
        Interpreters, one environment each. By default, cumatrix's own interpreter if the release has a wheel for it, otherwise
        another one on this machine.
    """
    found = {}
    pythons: Sequence[Python | None] = chosen or [None]
    for major in majors if release.majors else (0,):
        for python in pythons:
            recipe = _recipe(release, major, python)
            found[recipe.name] = recipe
    return list(found.values())


def _recipe(release: Published, major: int, chosen: Python | None) -> Recipe:
    library, version = LIBRARIES[release.library], str(release.version)
    distribution = release.distribution(major)
    name = f"{release.library}-{version}{f'-cuda{major}' if major else ''}"
    if distribution is None:
        there = " and ".join(map(str, release.majors))
        wanted = library.for_cuda(major)
        refused = (
            f"{release.library} {version} has no {wanted or 'distribution'} for CUDA {major}: it is for CUDA {there}"
        )
        return Recipe(
            name=name, library=release.library, version=version, distribution=wanted or release.library, requirements=(),
            python=chosen or OWN, cuda=major, released=release.day, refused=refused,
        )  # fmt: skip
    python = chosen or _python_for(release, distribution)
    if chosen:
        name += f"-python{chosen.minor}"
    before = _before(release, distribution, python)
    return Recipe(
        name=name,
        library=release.library,
        version=version,
        distribution=distribution,
        requirements=(
            _exactly(release, distribution),
            *([f"{library.by_major}=={major}.*"] if library.by_major else []),
            *(
                each
                for each in companions(release.library, release.version, dated=bool(before))
                if not _is(each, library.by_major)
            ),
        ),
        python=python,
        before=before,
        cuda=major,
        released=release.day,
        problem="" if release.wheel_for(distribution, python) else _no_wheel(release, distribution, python),
    )


def _exactly(release: Published, distribution: str) -> str:
    """Return the exact requirement.

    ``==2.13.0`` also accepts 2.13.0+cpu, which is another build. The requirement excludes such builds if the index has any.
    """
    if of_wheel := LIBRARIES[release.library].release_of(str(release.version)):
        return f"{distribution}=={of_wheel.wheel}"
    if release.version.local:
        return f"{distribution}=={release.version}"
    # Accept any build, because the index may have the release in a folder of wheels.
    return f"{distribution}=={release.version}" + "".join(f",!={release.version}+{local}" for local in release.builds)


def _python_for(release: Published, distribution: str) -> Python:
    if release.wheel_for(distribution, OWN):
        return OWN
    return next((python for python in pythons() if release.wheel_for(distribution, python)), OWN)


def _no_wheel(release: Published, distribution: str, python: Python) -> str:
    has = release.pythons([distribution])
    there = f"its wheels are for Python {', '.join(has)}" if has else "none of its wheels is for this machine"
    return f"{distribution} {release.version} has no wheel for Python {python.minor}: {there}"


_RELEASED = 90
"""Maximum number of days from a pre-release to its release."""


def _before(release: Published, distribution: str, python: Python) -> str:
    """Return the end of the day on which the release's wheel for this Python was uploaded.

    For a pre-release, return the time `_RELEASED` days after that, when its release is expected to exist.

    A pre-release may require packages of the later day: Numba 0.61.0rc1 needs llvmlite 0.44, which PyPI lacked for eight weeks.
    """
    wheel = release.wheel_for(distribution, python)
    moment: datetime | None = (wheel and wheel.date) or release.date
    if moment is None:
        return ""
    days = _RELEASED if release.version.is_prerelease else 1
    return datetime.combine(moment.date() + timedelta(days=days), time()).isoformat() + "Z"


def companions(library: str, version: Version, *, dated: bool) -> tuple[str, ...]:
    """Return the packages to install with a release in addition to its own requirements.

    Parameters
    ----------
    library, version
        The release.
    dated : bool
        Whether uv resolves with the versions of the release's date. Otherwise the versions come from the table
        (`harness.libraries`).
    """
    entry = _nearest(library, version)
    if entry is None:
        return ()
    if dated and not entry.wheel:
        return tuple(map(_without_version, entry.companions))
    return (*([f"numpy{entry.numpy}"] if entry.numpy else []), *entry.companions)


def _is(requirement: str, distribution: str) -> bool:
    return _name(requirement) == distribution


def _name(requirement: str) -> str:
    from packaging.requirements import (
        Requirement,  # a tenth of a run's import time
    )

    return Requirement(requirement).name


def _without_version(requirement: str) -> str:
    from packaging.requirements import (
        Requirement,  # a tenth of a run's import time
    )

    parsed = Requirement(requirement)
    return f"{parsed.name}[{','.join(sorted(parsed.extras))}]" if parsed.extras else parsed.name


def _nearest(library: str, version: Version) -> Release | None:
    """Return the newest table entry that is not newer than a version, or the first entry for an older version."""
    known = sorted(LIBRARIES[library].releases, key=_first)
    older = [entry for entry in known if _first(entry) <= version]
    return older[-1] if older else next(iter(known), None)


def _first(entry: Release) -> Version:
    try:
        return Version(entry.version.removesuffix(".*"))
    except InvalidVersion:
        return Version("0")


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A recipe resolved to exact versions of all packages.

    Parameters
    ----------
    recipe : Recipe
        The recipe.
    lock : str
        The resolution with the hash of every wheel, as pylock.toml (https://packaging.python.org/en/latest/specifications/pylock-toml/).
    """

    recipe: Recipe
    lock: str

    @property
    def packages(self) -> dict[str, str]:
        """Package versions by normalized name."""
        return {canonicalize_name(item["name"]): str(item.get("version", "")) for item in self._items}

    @property
    def key(self) -> str:
        """Name of its folder: equal for resolutions to the same wheels for the same Python."""
        recipe = self.recipe
        facts = [[item["name"], item.get("version"), _sources(item)] for item in self._items]
        words = json.dumps([recipe.python.path, recipe.python.version, sorted(map(json.dumps, facts))])
        digest = hashlib.sha256(words.encode()).hexdigest()[:12]
        return f"{recipe.distribution}-{recipe.version}-python{recipe.python.minor}-{digest}"

    @property
    def _items(self) -> list[dict[str, Any]]:
        return list(tomllib.loads(self.lock).get("packages", ()))

    def wheels(self) -> dict[str, list[str]]:
        """Return the file names of the candidate wheels, by the normalized name of their package."""
        return {
            canonicalize_name(item["name"]): [
                (wheel.get("url") or wheel.get("path") or "").rsplit("/", 1)[-1] for wheel in item.get("wheels", ())
            ]
            for item in self._items
        }


def _sources(item: Mapping[str, Any]) -> list[str]:
    """Identify a package's content by the hashes of its wheels and by its other sources."""
    hashes = sorted(str(wheel.get("hashes", {}).get("sha256", "")) for wheel in item.get("wheels", ()))
    places = [
        json.dumps(item[name], sort_keys=True, default=str)
        for name in ("vcs", "directory", "archive", "sdist")
        if name in item
    ]
    return [*hashes, *places]


def checked_lock(lock: str) -> str:
    """Return a lock if it is valid.

    Raises
    ------
    ValueError
        If the text is not a lock with packages.
    """
    packages = tomllib.loads(lock).get("packages")
    if (
        not isinstance(packages, list)
        or not packages
        or not all("name" in item for item in packages if isinstance(item, dict))
    ):
        raise ValueError("a lock without packages")
    return lock
