"""Releases and commits that a bisection searches, each in its own environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.version import Version

from harness.bisection.search import release_of
from harness.bisection.trials import Planned, SearchAxis
from harness.engine.context import RunContext, RunRequest, prepare
from harness.engine.environments import majors_of
from harness.engine.install import Missing, missing
from harness.engine.plan import cells_of
from harness.environments.dev_builds import Development, split_with
from harness.environments.index import Index
from harness.environments.releases import choose, parse_pythons, parse_with, published
from harness.environments.requirements import recipes
from harness.errors import NothingToRun, UsageError
from harness.libraries import DEFAULT_TOOLKIT, LIBRARIES
from harness.model import Case, Cell, HeaderLibrary
from harness.toolkits import RELEASES, parse_toolkits
from harness.toolkits.header_libraries import known_versions
from harness.toolkits.header_sources import Repository, read_source
from harness.toolkits.store import data_folder


class _Releases:
    """Versions that users name as they are listed."""

    def named(self, text: str | None) -> str | None:
        """Return the version of ``--good`` or ``--bad`` unchanged; `harness.bisection.search.Ends` looks it up."""
        return text

    def title(self, version: str) -> str:
        """Return a version's text in lists."""
        return version


@dataclass(frozen=True)
class LibraryReleases(_Releases):
    """Releases of a library under test.

    Parameters
    ----------
    library : str
        Name of the library.
    request : RunRequest
        The request; `plan` adds the releases.
    case : Case
        The program.
    versions : sequence of str
        Releases, oldest first.
    hopeless : Mapping[str, str]
        Reasons why releases have no wheel for this machine, by release.
    """

    library: str
    request: RunRequest
    case: Case
    versions: Sequence[str]
    hopeless: Mapping[str, str]
    place: str = "library"

    @classmethod
    def of(cls, library: str, request: RunRequest, case: Case, releases: str | None) -> LibraryReleases:
        """Read the releases from the index.

        Parameters
        ----------
        releases : str or None
            Releases in the user's spelling: ``0.57..0.61``; None for all.

        Raises
        ------
        UsageError
            If the words select no release.
        PartUnavailable
            If the index cannot be reached.
        """
        # A search varies one thing: without -t, all releases get the same CUDA, unless the library is built for one
        # CUDA release.
        if request.toolkits is None and not LIBRARIES[library].brings_cuda:
            request = replace(request, toolkits=DEFAULT_TOOLKIT)
        index = Index(data_folder() / "index", offline=request.offline)
        found = choose(parse_with(f"{library}={releases or 'all'}"), published(library, index))
        named = replace(request, libraries=(library,)).python_versions
        pythons = parse_pythons(named) if named else None
        refs = parse_toolkits(request.toolkits) if request.toolkits else []
        hopeless = {}
        for each in found:
            several = recipes(each, majors_of(each, refs), pythons)
            problems = [recipe.problem or recipe.refused for recipe in several]
            if all(problems):
                hopeless[str(each.version)] = problems[0] if problems else "it has no distribution"
        return cls(library, request, case, [str(each.version) for each in found], hopeless)

    def called(self, version: str) -> str:
        """Return the name in sentences: ``numba 0.59.0``."""
        return f"{self.library} {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """Plan the cells of several releases and resolve their environments together."""
        request = replace(self.request, libraries=(f"{self.library}={','.join(versions)}",))
        context = prepare(request)
        cells: dict[str, list[Cell]] = {}
        try:
            planned = cells_of(context, [self.case])
        except NothingToRun as error:
            return Planned(context, {}, dict.fromkeys(versions, str(error)))
        for cell in planned:
            resolved = context.environment_of(cell.toolchain).resolved
            if resolved:  # else the backend needs none of the releases
                cells.setdefault(resolved.recipe.version, []).append(cell)
        return Planned(context, cells)


@dataclass(frozen=True)
class LibraryCommits:
    """Commits of a library under test, in the order of history, each built in its own environment.

    Parameters
    ----------
    library : str
        Name of the library.
    request : RunRequest
        The request; `plan` adds the builds.
    case : Case
        The program.
    builds : Mapping[str, Development]
        Builds by the commit's short name, oldest first.
    subjects : Mapping[str, str]
        Short name and subject of each commit, by its short name.
    """

    library: str
    request: RunRequest
    case: Case
    builds: Mapping[str, Development]
    subjects: Mapping[str, str]
    hopeless: Mapping[str, str] = field(default_factory=dict)
    place: str = "library"

    @classmethod
    def of(cls, library: str, request: RunRequest, case: Case) -> LibraryCommits:
        """Read the commits of ``--with "NAME @ REPOSITORY@FIRST..LAST"``.

        Raises
        ------
        UsageError
            If ``--with`` names anything else.
        PartUnavailable
            If the repository cannot be reached.
        """
        releases, builds = split_with(request.libraries, Path.cwd(), offline=request.offline)
        if releases or len(builds) < 2 or not all(each.commit and each.library == library for each in builds):
            raise UsageError(
                f'--over {library} searches releases of {library}: name them with --releases, and not with --with, which takes commits: --with "{library} @ ./checkout@FIRST..LAST"'
            )
        if request.toolkits is None and not LIBRARIES[library].brings_cuda:
            request = replace(request, toolkits=DEFAULT_TOOLKIT)
        repository = Repository(read_source(builds[0].requirement.partition(" @ ")[2], Path.cwd()).url, offline=True)
        named = repository.subjects([each.commit for each in builds])
        return cls(
            library, request, case, {short(each.commit): each for each in builds},
            {short(commit): subject for commit, subject in named.items()},
        )  # fmt: skip

    @property
    def versions(self) -> Sequence[str]:
        """Short names of the commits, oldest first."""
        return list(self.builds)

    def named(self, text: str | None) -> str | None:
        """Return the commit that ``--good`` or ``--bad`` names.

        Raises
        ------
        UsageError
            If the text matches no searched commit, or several.
        """
        found = [name for name, build in self.builds.items() if text and build.commit.startswith(text.lower())]
        if text and len(found) != 1:
            raise UsageError(f"{text!r} names {len(found) or 'none'} of the commits of --with: give the first digits of one")  # fmt: skip
        return found[0] if found else None

    def called(self, version: str) -> str:
        """Return the name in sentences: ``numba-cuda 3f2a9c14 (Fix the cast)``."""
        return f"{self.library} {self.title(version)}"

    def title(self, version: str) -> str:
        """Return the name in lists: ``3f2a9c14 (Fix the cast)``."""
        return self.subjects.get(version, version)

    def plan(self, versions: Sequence[str]) -> Planned:
        """Plan the cells of several commits and build the commits together."""
        context = prepare(replace(self.request, libraries=tuple(self.builds[name].requirement for name in versions)))
        cells: dict[str, list[Cell]] = {}
        try:
            planned = cells_of(context, [self.case])
        except NothingToRun as error:
            return Planned(context, {}, dict.fromkeys(versions, str(error)))
        names = LIBRARIES[self.library].distributions
        version_of = {self.builds[name].commit: name for name in versions}
        for cell in planned:
            environment = context.environment_of(cell.toolchain)
            commit = next((environment.origins[name].commit for name in names if name in environment.origins), "")
            if commit in version_of:
                cells.setdefault(version_of[commit], []).append(cell)
        broken = [why for each in context.others for why in each.broken.values()]
        reasons = {name: why for name in versions for why in broken if self.builds[name].commit in why}
        return Planned(context, cells, reasons)


def short(commit: str) -> str:
    """Return the first digits of a commit's name."""
    return commit[:12]


@dataclass(frozen=True)
class HeaderReleases(_Releases):
    """Versions of a header library, each in place of the case's own.

    Parameters
    ----------
    library : HeaderLibrary
        The library.
    context : RunContext
        The request, and the tools on this machine.
    case : Case
        The program.
    versions : sequence of str
        Versions, oldest first.
    """

    library: HeaderLibrary
    context: RunContext
    case: Case
    versions: Sequence[str]
    hopeless: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Name of the library in variants."""
        return self.library.name

    def called(self, version: str) -> str:
        """Return the name in sentences: ``cutlass 3.5.1``."""
        return f"{self.library.name} {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """Plan the cells of several versions."""
        cells, reasons = {}, {}
        for version in versions:
            try:
                case = with_version(self.case, self.library, version)
                cells[version] = cells_of(self.context, [case])
            except NothingToRun as error:
                reasons[version] = str(error)
        return Planned(self.context, cells, reasons)


def versions_of(library: HeaderLibrary, text: str | None) -> list[str]:
    """Return the versions that a text selects, oldest first; by default all known versions in wheels, without pre-releases.

    Raises
    ------
    UsageError
        If the text selects no version.
    """
    known = known_versions(library)
    stable = [version for version in known if not Version(version).is_prerelease]
    if not text:
        return stable
    found: set[str] = set()
    for word in filter(None, map(str.strip, text.split(","))):
        first, dots, last = word.partition("..")
        if dots:
            low, high = (
                stable.index(release_of(first, stable, library.name)),
                stable.index(release_of(last, stable, library.name)),
            )
            found |= set(stable[low : high + 1])
        else:
            found.add(release_of(word, known, library.name))
    if not found:
        raise UsageError(f"--releases {text!r} names no release of {library.name}")
    return [version for version in known if version in found]


def with_version(case: Case, library: HeaderLibrary, version: str) -> Case:
    """Return the program with one version of a header library; a file gets the version in its options.

    Raises
    ------
    UsageError
        If the case does not use the library.
    """
    name = library.name
    if case.program:
        variants = [
            replace(
                variant,
                libraries={**variant.libraries, name: version},
                options=f"{variant.options} --library={name}={version}".strip(),
            )
            for variant in case.variants
        ]
        return replace(case, libraries={**case.libraries, name: library}, variants=tuple(variants))
    if name not in case.libraries:
        raise UsageError(f"{case.name} does not use {name}: its [libraries] name {', '.join(case.libraries) or 'none'}")
    first = case.variants[0].libraries[name]
    variants = [
        replace(variant, labels={**variant.labels, name: version}, libraries={**variant.libraries, name: version})
        for variant in case.variants
        if variant.libraries[name] == first
    ]
    return replace(case, variants=tuple(variants))


NOT_INSTALLED = "not installed, and --offline downloads nothing"


def missing_releases(axis: SearchAxis, versions: Sequence[str]) -> tuple[dict[str, str], Missing]:
    """Return the releases that need the network, with the reason, and everything that they lack."""
    planned = axis.plan([version for version in versions if version not in axis.hopeless])
    lacking = {
        version: cells
        for version, cells in planned.cells.items()
        if cells and all(missing([cell], planned.context, offline=True) for cell in cells)
    }
    wanted = missing([cell for cells in lacking.values() for cell in cells], planned.context, offline=True)
    return dict.fromkeys(lacking, NOT_INSTALLED), wanted


@dataclass(frozen=True)
class CudaReleases(_Releases):
    """CUDA releases: whole toolkits, or the headers of each with one compiler.

    Parameters
    ----------
    context : RunContext
        The request, and the tools on this machine; `plan` adds the toolkits.
    case : Case
        The program.
    versions : sequence of str
        CUDA releases, oldest first.
    compiler : str
        Release whose compiler reads the headers of each release; empty to search whole toolkits.
    """

    context: RunContext
    case: Case
    versions: Sequence[str]
    compiler: str = ""
    place: str = "toolkit"
    hopeless: Mapping[str, str] = field(default_factory=dict)

    def called(self, version: str) -> str:
        """Return the name in sentences: ``CUDA 12.4``, or ``headers of CUDA 12.4 (compiler: 12.6)``."""
        return f"headers of CUDA {version} (compiler: {self.compiler})" if self.compiler else f"CUDA {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """Plan the cells of several releases."""
        words = [f"{self.compiler}+headers{version}" if self.compiler else version for version in versions]
        context = self.context.asking(toolkits=",".join(words))
        if context.request.libraries:  # the toolkit determines the distribution of a library
            context = prepare(context.request, context.finder)
        cells: dict[str, list[Cell]] = {}
        try:
            planned = cells_of(context, [self.case])
        except NothingToRun as error:
            return Planned(context, {}, dict.fromkeys(versions, str(error)))
        for cell in planned:
            ref = cell.toolchain.toolkit
            cells.setdefault(ref.headers if self.compiler else ref.release, []).append(cell)
        return Planned(context, cells)


def releases_of(text: str | None) -> list[str]:
    """Return the CUDA releases that a text selects, oldest first; by default all known releases.

    Raises
    ------
    UsageError
        If a toolkit is not a plain release from wheels, since others have no order.
    """
    refs = parse_toolkits(text) if text else parse_toolkits("all")
    if any(ref.local or ref.bundled or ref.headers != ref.release for ref in refs):
        raise UsageError(f"{text!r}: bisect goes over CUDA releases of PyPI's wheels, such as 11.8..12.9")
    return [name for name in RELEASES if name in {ref.release for ref in refs}]
