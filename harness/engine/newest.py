"""The newest CUDA release that each backend can use, for programs that are tried where nobody names one."""

from __future__ import annotations

from harness.backends import BackendInfo
from harness.engine.environment import Environment
from harness.engine.line_up import default_toolkit
from harness.libraries import LIBRARIES
from harness.toolkits import RELEASES, ToolkitStore


def newest_for(
    info: BackendInfo, environment: Environment, store: ToolkitStore, *, offline: bool = False
) -> tuple[str, str]:
    """A release, and why it is that one.

    A compiler by itself has no limit. A CuPy loads the NVRTC of one major release; PyTorch, Numba, and a library that takes CUDA from wheels
    in its environment, are tried with the release that they are made for.

    Parameters
    ----------
    info : BackendInfo
        The backend.
    environment : Environment
        Where its library is installed.
    store : ToolkitStore
        The installed toolkits.
    offline : bool
        Whether only what is installed counts.
    """
    if not info.library:
        return _newest(
            store, "", offline=offline
        ), "the newest release" if not offline else "the newest that is installed"
    found = environment.version_of(*info.distributions)
    fits = LIBRARIES[info.library].distributions[found[0]] if found else ""
    own = default_toolkit(environment)
    if not found or not fits or not LIBRARIES[info.library].follows_runtime or own != fits:
        return own, f"what {found[0] if found else info.library} is tried with"
    major = fits.split(".")[0]
    return _newest(store, major, offline=offline), f"the newest that {found[0]} can use"


def _newest(store: ToolkitStore, major: str, *, offline: bool) -> str:
    fitting = [name for name in RELEASES if not major or name.split(".")[0] == major]
    there = [name for name in fitting if store.find(name)] if offline else fitting
    return (there or fitting)[-1]
