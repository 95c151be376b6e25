"""Header libraries as a search axis: CUTLASS, CCCL before a toolkit's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from harness.bisection.ends import release_of
from harness.bisection.tries import Planned
from harness.engine.context import RunContext
from harness.engine.session import Request, cells_of
from harness.errors import NothingToRun, UsageError
from harness.model import Case, HeaderLibrary
from harness.toolkits.libraries import known_versions


@dataclass(frozen=True)
class HeaderReleases:
    """Versions of a header library, each in the place of those that the case names.

    Parameters
    ----------
    library : HeaderLibrary
        The library.
    context : RunContext
        What cells are run with.
    request : Request
        What is asked of each.
    case : Case
        The program.
    versions : sequence of str
        Oldest first.
    """

    library: HeaderLibrary
    context: RunContext
    request: Request
    case: Case
    versions: Sequence[str]
    hopeless: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The library's name in variants."""
        return self.library.name

    def called(self, version: str) -> str:
        """``cutlass 3.5.1``."""
        return f"{self.library.name} {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """The cells of some versions."""
        cells, reasons = {}, {}
        for version in versions:
            try:
                case = with_version(self.case, self.library, version)
                cells[version] = cells_of(
                    self.request, self.context.environment, [case], self.context.devices, self.context.others
                )
            except NothingToRun as error:
                reasons[version] = str(error)
        return Planned(self.context, cells, reasons)


def versions_of(library: HeaderLibrary, text: str | None) -> list[str]:
    """Versions out of what a user wrote, oldest first; all that cumatrix knows wheels of, but pre-releases, where nothing is written.

    Raises
    ------
    UsageError
        When there is none of them.
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
    """The program with one version of a header library; a file gets it in addition to its options.

    Raises
    ------
    UsageError
        For a case that has nothing to do with the library.
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
