"""CUDA releases as a search axis: whole toolkits, or headers under one compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.bisection.tries import Planned
from harness.engine.context import RunContext
from harness.engine.session import Request, cells_of, context_for
from harness.errors import NothingToRun, UsageError
from harness.model import Case, Cell
from harness.toolkits import RELEASES, parse_toolkits


@dataclass(frozen=True)
class CudaReleases:
    """Whole toolkits, or headers of each under one compiler.

    Parameters
    ----------
    context : RunContext
        The run's context, for cells without requested libraries.
    request : Request
        What is asked of each; its toolkits are put in here.
    case : Case
        The program.
    versions : sequence of str
        CUDA releases, oldest first.
    compiler : str
        The release whose compiler takes the headers of each; empty where the whole toolkit is searched.
    """

    context: RunContext
    request: Request
    case: Case
    versions: Sequence[str]
    compiler: str = ""
    place: str = "toolkit"
    hopeless: Mapping[str, str] = field(default_factory=dict)

    def called(self, version: str) -> str:
        """``CUDA 12.4``, or whose headers they are."""
        return f"headers of CUDA {version} (compiler: {self.compiler})" if self.compiler else f"CUDA {version}"

    def plan(self, versions: Sequence[str]) -> Planned:
        """The cells of some releases."""
        words = [f"{self.compiler}+headers{version}" if self.compiler else version for version in versions]
        request = replace(self.request, toolkits=",".join(words))
        # Which distribution of a library is taken depends on the toolkit.
        context = context_for(request) if request.libraries else self.context
        cells: dict[str, list[Cell]] = {}
        try:
            planned = cells_of(request, context.environment, [self.case], context.devices, context.others)
        except NothingToRun as error:
            return Planned(context, {}, dict.fromkeys(versions, str(error)))
        for cell in planned:
            ref = cell.toolchain.toolkit
            cells.setdefault(ref.headers if self.compiler else ref.release, []).append(cell)
        return Planned(context, cells)


def releases_of(text: str | None) -> list[str]:
    """CUDA releases out of what a user wrote, oldest first; all that cumatrix knows where nothing is written.

    Raises
    ------
    UsageError
        On releases that are none of wheels, which cannot be put in a row.
    """
    refs = parse_toolkits(text) if text else parse_toolkits("all")
    if any(ref.local or ref.headers != ref.release for ref in refs):
        raise UsageError(f"{text!r}: bisect goes over CUDA releases of PyPI's wheels, such as 11.8..12.9")
    return [name for name in RELEASES if name in {ref.release for ref in refs}]
