"""CUDA releases as what is searched: whole toolkits, or headers beside one compiler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.bisection.tries import Made
from harness.engine.context import RunContext
from harness.errors import UsageError
from harness.model import Cell
from harness.toolkits import RELEASES, parse_toolkits

Plan = Callable[[str], Sequence[Cell]]
"""The cells with a toolkit, as ``--toolkit`` names it."""


@dataclass(frozen=True)
class CudaReleases:
    """Whole toolkits.

    Parameters
    ----------
    context : RunContext
        What cells are run with.
    plan : callable
        The cells of a toolkit.
    versions : sequence of str
        CUDA releases, oldest first.
    compiler : str
        The release whose compiler takes the headers of each; empty where the whole toolkit is searched.
    """

    context: RunContext
    plan: Plan
    versions: Sequence[str] = field(default_factory=lambda: list(RELEASES))
    compiler: str = ""
    place: str = "toolkit"

    def called(self, version: str) -> str:
        """``CUDA 12.4``, or whose headers they are."""
        return f"headers of CUDA {version} (compiler: {self.compiler})" if self.compiler else f"CUDA {version}"

    def made(self, version: str) -> Made:
        """Install a release unless it is there, and plan its cells."""
        for name in filter(None, (self.compiler, version)):
            self.context.store.install(RELEASES[name])
        word = f"{self.compiler}+headers{version}" if self.compiler else version
        return Made(self.context, tuple(self.plan(word)))


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
