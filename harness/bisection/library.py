"""Releases of a library under test as what is searched, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.bisection.tries import Planned
from harness.engine.line_up import majors_of
from harness.engine.session import Request, cells_of, context_for, versions_of_python
from harness.environments.index import Index
from harness.environments.pythons import parse_pythons
from harness.environments.recipe import recipes
from harness.environments.releases import choose, parse_with, published
from harness.errors import NothingToRun
from harness.libraries import DEFAULT_TOOLKIT
from harness.model import Case, Cell
from harness.toolkits import parse_toolkits
from harness.toolkits.store import data_folder


@dataclass(frozen=True)
class LibraryReleases:
    """Releases of CuPy, Numba, numba-cuda or PyTorch.

    Parameters
    ----------
    library : str
        Its name.
    request : Request
        What is asked of each; its libraries are put in here.
    case : Case
        The program.
    versions : sequence of str
        Oldest first.
    hopeless : Mapping[str, str]
        Those without a wheel for this machine, and why.
    """

    library: str
    request: Request
    case: Case
    versions: Sequence[str]
    hopeless: Mapping[str, str]
    place: str = "library"

    @classmethod
    def of(cls, library: str, request: Request, case: Case, releases: str | None) -> LibraryReleases:
        """Ask the index which releases there are.

        Parameters
        ----------
        releases : str or None
            As users write them: ``0.57..0.61``; None for all.

        Raises
        ------
        UsageError
            On words that no release is meant by.
        PartUnavailable
            When the index cannot be asked.
        """
        # One thing is searched at a time: without -t, all releases get the same CUDA, but PyTorch, which goes with the one it was built for.
        if request.toolkits is None and library != "torch":
            request = replace(request, toolkits=DEFAULT_TOOLKIT)
        index = Index(data_folder() / "index", offline=request.offline)
        found = choose(parse_with(f"{library}={releases or 'all'}"), published(library, index))
        asked = versions_of_python(replace(request, libraries=(library,)))
        pythons = parse_pythons(asked) if asked else None
        refs = parse_toolkits(request.toolkits) if request.toolkits else []
        hopeless = {}
        for each in found:
            several = recipes(each, majors_of(each, refs), pythons)
            problems = [recipe.problem or recipe.refused for recipe in several]
            if all(problems):
                hopeless[str(each.version)] = problems[0] if problems else "it has no distribution"
        return cls(library, request, case, [str(each.version) for each in found], hopeless)

    def called(self, version: str) -> str:
        """``numba 0.59.0``."""
        return f"{self.library} {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """The cells of some releases, whose environments are resolved at once."""
        request = replace(self.request, libraries=(f"{self.library}={','.join(versions)}",))
        context = context_for(request)
        cells: dict[str, list[Cell]] = {}
        try:
            planned = cells_of(request, context.environment, [self.case], context.devices, context.others)
        except NothingToRun as error:
            return Planned(context, {}, dict.fromkeys(versions, str(error)))
        for cell in planned:
            resolved = context.environment_of(cell.toolchain).resolved
            if resolved:  # else a backend that none of the releases has a part in
                cells.setdefault(resolved.recipe.version, []).append(cell)
        return Planned(context, cells)
