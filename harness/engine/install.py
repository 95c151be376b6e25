"""Installation of the parts that the chosen cells need: environments, CUDA releases and header libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial

from harness.backends import BACKENDS
from harness.cases.rules import releases_named
from harness.engine.context import RunContext
from harness.engine.environment import Environment, look
from harness.environments.index import Index
from harness.environments.requirements import Recipe
from harness.environments.store import EnvironmentStore
from harness.errors import CumatrixError, PartUnavailable, UsageError
from harness.libraries import LIBRARIES
from harness.model import Cell, HeaderLibrary
from harness.nvidia.nvcc import missing_from
from harness.toolkits import RELEASES, LibraryStore, Release, ToolkitStore
from harness.toolkits.download import NothingInstallable, pinned
from harness.toolkits.header_libraries import known_versions
from harness.toolkits.releases import PARTS, parts_among, wheels_of
from harness.toolkits.store import data_folder


@dataclass(frozen=True)
class Missing:
    """Parts that cells need and that are not installed.

    Parameters
    ----------
    environments : list of Environment
        Environments that do not exist.
    releases : list of str
        CUDA releases.
    libraries : list of (HeaderLibrary, str)
        Header libraries, with their versions.
    parts : dict
        Missing CUDA components that a backend's compiler needs, by CUDA release.
    """

    environments: list[Environment] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)
    libraries: list[tuple[HeaderLibrary, str]] = field(default_factory=list)
    parts: dict[str, list[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.environments or self.releases or self.libraries or self.parts)

    def __str__(self) -> str:
        """Return a list for messages: ``cupy 13.0.0, CUDA 12.4, cutlass 3.5.1``."""
        named = [f"{each.library} {_recipe_of(each).version}" for each in self.environments]
        named += [f"CUDA {name}" for name in self.releases if name not in self.parts]
        named += [_with_parts(name, parts) for name, parts in self.parts.items()]
        named += [f"{library.name} {version}" for library, version in self.libraries]
        return ", ".join(dict.fromkeys(named))

    @property
    def offline(self) -> str:
        """The message for ``--offline``, with the one command that installs all parts."""
        return f"not installed, and --offline downloads nothing: {self}. To install it, run `{self.command}`"

    @property
    def command(self) -> str:
        """The shell command that installs all parts."""
        commands = []
        for name, parts in self.parts.items():
            commands.append(f"cumatrix toolkits install {name} --with {','.join(parts)}")
        releases = [name for name in self.releases if name not in self.parts]
        if releases or self.libraries:
            words = [*releases, *(f"{library.name}=={version}" for library, version in self.libraries)]
            commands.append(f"cumatrix toolkits install {' '.join(words)}")
        if self.environments:
            commands.append(f"cumatrix libraries install {' '.join(dict.fromkeys(map(_spelled, self.environments)))}")
        return " && ".join(commands)


def _with_parts(release: str, parts: Iterable[str]) -> str:
    return f"CUDA {release} with {', '.join(parts)}"


def _spelled(environment: Environment) -> str:
    recipe = _recipe_of(environment)
    cuda = f"+cuda{recipe.cuda}" if recipe.cuda else ""
    mark = f"+{environment.mark}" if environment.mark else ""
    return f"{recipe.library}={recipe.version}{cuda}{mark}"


def _recipe_of(environment: Environment) -> Recipe:
    assert environment.resolved is not None
    return environment.resolved.recipe


def _unknown(environment: Environment) -> bool:
    """Return whether a release has never been resolved; a release that cannot be installed here is known."""
    resolved = environment.resolved
    return bool(resolved and not resolved.lock and not (resolved.recipe.problem or resolved.recipe.refused))


def missing(cells: Iterable[Cell], context: RunContext, *, offline: bool = False) -> Missing:
    """Return the missing parts of the cells; cells of unsupported combinations need none.

    With `offline`, releases that were never resolved count as missing, not as broken.
    """
    found = Missing()
    seen: set[object] = set()
    there: set[object] = set()
    store, headers = context.store, LibraryStore()
    for cell in cells:
        toolchain = cell.toolchain
        first = (toolchain, tuple(cell.variant.libraries.items()), tuple(releases_named(cell).items()))
        if first in seen and not cell.case.unsupported:
            continue
        facts = cell.facts()
        if any(rule.when(facts) for rule in cell.case.unsupported):
            continue
        seen.add(first)
        environment = context.environment_of(toolchain)
        unknown = offline and _unknown(environment)
        if not _can_run(replace(environment, broken={}) if unknown else environment, cell):
            continue
        ref = toolchain.toolkit
        if BACKENDS[toolchain.backend].nvcc and not unknown and not ref.local and missing_from(ref.release):
            continue
        if environment.resolved and not environment.python and environment not in found.environments:
            found.environments.append(environment)
        if unknown and LIBRARIES[environment.library].follows_runtime and not _recipe_of(environment).cuda:
            continue  # PyTorch: its wheels determine the CUDA release
        own = () if ref.local or ref.bundled else (ref.release, ref.headers)
        for name in (*own, *releases_named(cell).values()):
            if name not in there:
                there.add(name)
                if store.find(name) is None:
                    found.releases.append(name)
        for name in dict.fromkeys(own):
            lacking = _lacking(BACKENDS[toolchain.backend].parts, name, store)
            if lacking:
                found.parts.setdefault(name, lacking)
        for name, version in cell.variant.libraries.items():
            # Two cases may have different libraries of one name.
            if (cell.case.name, name, version) not in there:
                there.add((cell.case.name, name, version))
                pair = (cell.case.libraries[name], version)
                if pair not in found.libraries and headers.find(*pair) is None:
                    found.libraries.append(pair)
    return found


def _lacking(parts: Sequence[str], release: str, store: ToolkitStore) -> list[str]:
    """Return the components that an installed or future toolkit lacks, except those that PyPI does not have."""
    toolkit = store.find(release) if parts else None
    there = parts_among(toolkit.packages, release) if toolkit else []
    return [name for name in parts if name not in there and release in PARTS[name].wheels]


def _can_run(environment: Environment, cell: Cell) -> bool:
    """Return whether the library is or will be installed and supports the toolkit; if not, no installation helps."""
    info = BACKENDS[cell.toolchain.backend]
    if not info.distributions:
        return True
    found = environment.version_of(*info.distributions)
    if found is None and info.machine:
        return True
    return (
        found is not None
        and not any(name in environment.broken for name in info.distributions)
        and not environment.version_of(*info.excludes)
        and not info.incompatibility(found[0], cell.toolchain.toolkit.release)
    )


@dataclass(frozen=True)
class Step:
    """One installation step.

    Parameters
    ----------
    title : str
        Name in messages: ``CUDA 12.4``.
    size : int
        Size of its wheels in bytes, according to the index; 0 if unknown.
    run : callable
        Function that installs it.
    """

    title: str
    size: int
    run: Callable[[], object]


Report = Callable[[Sequence[Step]], Callable[[Step], AbstractContextManager[None]]]
"""Type of the progress display: it receives all steps before the first, and returns a context manager for each step."""


def steps(wanted: Missing, index: Index, tell: Callable[[str], None], *, force: bool = False) -> list[Step]:
    """Return the steps, with environments last, as they are the largest; `force` replaces existing environments."""
    releases, headers, store = ToolkitStore(tell=tell), LibraryStore(tell=tell), EnvironmentStore(tell=tell)
    found = []
    for name in dict.fromkeys([*wanted.releases, *wanted.parts]):
        release, parts = RELEASES[name], wanted.parts.get(name, [])
        title = _with_parts(name, parts) if parts else f"CUDA {name}"
        size = index.size({**release.packages, **wheels_of(parts, name)})
        found.append(Step(title, size, partial(_install_release, releases, release, parts)))
    for library, version in wanted.libraries:
        size = index.size(dict([library.wheel(version)]))
        found.append(Step(f"{library.name} {version}", size, partial(headers.install, library, version)))
    for environment in wanted.environments:
        assert environment.resolved is not None
        recipe, resolved = environment.resolved.recipe, environment.resolved
        title = f"{recipe.library} {recipe.version} ({recipe.distribution}, Python {recipe.python.minor})"
        found.append(
            Step(title, index.size(resolved.packages, resolved.wheels()), partial(store.make, resolved, force=force))
        )
    return found


def _install_release(store: ToolkitStore, release: Release, parts: Sequence[str]) -> None:
    packages = {**release.packages, **wheels_of(parts, release.name)}
    unknown = [f"{name} {version}" for name, version in packages.items() if pinned(name, version) is None]
    if unknown:
        raise PartUnavailable(
            f"cumatrix does not know the wheels of CUDA {release.name} ({', '.join(unknown)}), and installs them only on request: "
            f"run `cumatrix toolkits install {release.name}`"
        )
    store.install(release, parts)


def install(cells: Sequence[Cell], context: RunContext, report: Report, tell: Callable[[str], None]) -> RunContext:
    """Install the parts that the cells need; messages name failed parts, whose cells become ``unavailable``.

    Returns
    -------
    RunContext
        With the environments that exist after installation.
    """
    offline = context.request.offline  # the message has the missing parts and the command that installs them
    wanted = missing(cells, context, offline=offline)
    used = {cell.toolchain.environment for cell in cells}
    context = replace(context, others=tuple(each for each in context.others if each.name in used))
    if not wanted:
        return with_made(context)
    if offline:
        tell(wanted.offline)
        return with_made(
            replace(context, absent=f"not installed, and --offline downloads nothing: run `{wanted.command}`")
        )
    index = Index(data_folder() / "index")
    _check_published(wanted, index)
    to_do = steps(wanted, index, tell)
    under = report(to_do)
    problems = []
    for place, step in enumerate(to_do):
        try:
            with under(step):
                step.run()
        except NothingInstallable as error:
            problems.append(f"not installed: {', '.join(each.title for each in to_do[place:])}: {error.why}")
            break
        except CumatrixError as error:
            problems.append(str(error))
    for problem in problems:
        tell(problem)
    return with_made(context, problems[-1] if problems else "")


def _check_published(wanted: Missing, index: Index) -> None:
    """Refuse header-library versions unknown to cumatrix and the index, before anything is installed."""
    for library, version in wanted.libraries:
        known = known_versions(library)
        distribution, number = library.wheel(version)
        if version not in known and not index.has(distribution, number):
            raise UsageError(f"there is no {library.name} {version}; known are {', '.join(known)}")


def with_made(context: RunContext, why: str = "") -> RunContext:
    """Return the context with the interpreters of existing environments; the libraries of missing ones are broken.

    Parameters
    ----------
    context : RunContext
        Context with environments that may have been created since.
    why : str
        Reason of missing environments.
    """
    if not context.others:
        return context
    store = EnvironmentStore()
    return replace(context, others=tuple(_made(each, store, why, context.absent) for each in context.others))


def _made(environment: Environment, store: EnvironmentStore, why: str, absent: str) -> Environment:
    resolved = environment.resolved
    if resolved is None or (environment.broken and not (absent and _unknown(environment))):
        return environment
    recipe = resolved.recipe
    made = store.find(resolved) if resolved.lock else None
    if made is None:
        name = f"{recipe.library} {recipe.version}"
        problem = absent or (why if why.startswith(name) else f"{name}: {why or 'it is not installed'}")
        return replace(environment, broken={recipe.distribution: problem})
    # The installed version must be the resolved one.
    there = look(
        made.python,
        name=environment.name,
        require=[f"{recipe.distribution}==={resolved.packages[recipe.distribution]}"],
    )
    return replace(
        environment, python=made.python, version=there.version, distributions=there.distributions, broken=there.broken
    )
