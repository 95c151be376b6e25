"""Why a selection is empty."""

from __future__ import annotations

from collections.abc import Sequence

from harness.backends import BACKENDS, BackendInfo
from harness.engine.environment import Environment
from harness.errors import LibraryMissing, NothingToRun
from harness.model import Case


def nothing(
    cases: Sequence[Case],
    backends: Sequence[BackendInfo],
    environment: Environment,
    *,
    named: bool,
    releases: bool = False,
) -> NothingToRun:
    """The error for a selection without a cell.

    Parameters
    ----------
    named : bool
        Whether the user named the backends.
    releases : bool
        Whether environments of ``--with`` are tried, and not `environment`.
    """
    fitting = {name for name, info in BACKENDS.items() if any(info.language(case) for case in cases)}
    if cases and fitting and not fitting & {info.name for info in backends}:
        what = f"{cases[0].name} is" if len(cases) == 1 else "all of the cases chosen are"
        python = all("python" in case.sources and "cuda" not in case.sources for case in cases)
        cupy = all(set(case.sources) == {"cupy"} for case in cases)
        if named:
            asked = ", ".join(info.name for info in backends)
            return NothingToRun(f"nothing to run: {what} not for {asked}, only for {', '.join(sorted(fitting))}")
        if python and releases:
            return NothingToRun(
                f"nothing to run: {what} for Numba: name its releases with --with, numba=V or numba-cuda=V"
            )
        if releases:
            asked = ", ".join(dict.fromkeys(info.library for info in backends))
            return NothingToRun(
                f"nothing to run: {what} not for {asked}, which --with names, only for {', '.join(sorted(fitting))}"
            )
        if python:
            return LibraryMissing(
                f"{what} for Numba, and neither numba-cuda nor numba is installed for {environment.python}: "
                f"`{environment.python} -m pip install numba-cuda` (or numba), or name an interpreter that has one with --python"
            )
        if cupy:
            return LibraryMissing(
                f"{what} for CuPy, which is not installed for {environment.python}: name a release with --with cupy=VERSION, or an interpreter that has one with --python"
            )
    return NothingToRun("nothing to run: no cell fits this selection of cases, backends, toolkits and targets")
