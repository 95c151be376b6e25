"""The toolkit that nvcc is tried with where nobody names one: PyPI's wheels have an nvcc from CUDA 13.0 on."""

from __future__ import annotations

from collections.abc import Iterable

from harness.backends import BackendInfo
from harness.toolkits import RELEASES, ToolkitStore
from harness.toolkits.local import find_local

_USUAL = "13.0"  # the first release whose wheels have an nvcc


def toolkit_for(named: Iterable[BackendInfo], own: str, store: ToolkitStore | None = None) -> str:
    """The environment's `own` toolkit, or one that has an nvcc where nvcc is asked for by name, and no library that needs its own.

    Parameters
    ----------
    named : iterable of BackendInfo
        Backends that were asked for by name.
    own : str
        Release that fits the environment.
    store : ToolkitStore, optional
        The user's own when left out.
    """
    named = list(named)
    if "nvcc" in (info.name for info in named) and not any(info.distributions for info in named):
        return toolkit_with_nvcc(own, store or ToolkitStore())
    return own


def toolkit_with_nvcc(own: str, store: ToolkitStore) -> str:
    """The environment's `own` release, the usual one, the newest that is installed, one of this machine's: the first that has an nvcc."""
    there = [
        name
        for name in reversed(list(RELEASES))
        if (found := store.find(name)) and (found.home / "bin" / "nvcc").is_file()
    ]
    if own in there or int(own.split(".")[0]) >= 13:
        return own
    if _USUAL in there or not there:
        local = [] if there else [name for name, home in find_local().items() if (home / "bin" / "nvcc").is_file()]
        return f"{local[0]}@local" if local else _USUAL
    return there[0]
