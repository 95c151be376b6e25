"""A search without the network: of all releases, the installed ones."""

from __future__ import annotations

from collections.abc import Sequence

from harness.bisection.tries import SearchAxis
from harness.engine.install import Missing, missing

NOT_INSTALLED = "not installed, and --offline downloads nothing"


def not_there(axis: SearchAxis, versions: Sequence[str]) -> tuple[dict[str, str], Missing]:
    """Releases that cannot be tried without the network, each with the reason; and all that is missing of them.

    Parameters
    ----------
    axis : SearchAxis
        What is searched.
    versions : sequence of str
        The releases between the ends.
    """
    planned = axis.plan([version for version in versions if version not in axis.hopeless])
    lacking = {
        version: cells
        for version, cells in planned.cells.items()
        if cells and all(missing([cell], planned.context, offline=True) for cell in cells)
    }
    wanted = missing([cell for cells in lacking.values() for cell in cells], planned.context, offline=True)
    return dict.fromkeys(lacking, NOT_INSTALLED), wanted
