"""The backends, by name. What they load is imported in workers only (`harness.backends.api`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy")


@dataclass(frozen=True, kw_only=True)
class BackendInfo:
    """What the scheduler knows of a backend without loading it.

    Parameters
    ----------
    name, title : str
        Its name, and one line for people.
    language : str
        The language of the sources it takes: ``cuda`` or ``python``.
    distributions : tuple of str
        Distributions that it may come from, by normalized name, the first one installed counting;
        empty for a backend that needs nothing but the toolkit.
    excludes : tuple of str
        Distributions that take its place when they are installed.
    """

    name: str
    title: str
    language: str
    distributions: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()

    def misfit(self, distribution: str, release: str) -> str | None:
        """Why this build of the library cannot use this CUDA release, or None where it can."""
        if distribution.startswith("cupy-cuda"):
            major = distribution.removeprefix("cupy-cuda").removesuffix("x")
            if release.split(".")[0] != major:
                return f"{distribution} loads the NVRTC of CUDA {major} and no other; CUDA {release} needs cupy-cuda{release.split('.')[0]}x"
        return None


BACKENDS: Final[Mapping[str, BackendInfo]] = {
    info.name: info
    for info in (
        BackendInfo(name="nvrtc", title="NVRTC called directly, the control", language="cuda"),
        BackendInfo(name="cupy-nvrtc", title="CuPy's RawModule through NVRTC", language="cuda", distributions=_CUPY),
        BackendInfo(name="cupy-jitify", title="CuPy's RawModule through Jitify", language="cuda", distributions=_CUPY),
        BackendInfo(
            name="numba",
            title="Numba's own CUDA target",
            language="python",
            distributions=("numba",),
            excludes=("numba-cuda",),
        ),
        BackendInfo(
            name="numba-cuda", title="numba-cuda, Numba's successor", language="python", distributions=("numba-cuda",)
        ),
    )
}
"""Every backend by name, in the order in which tables show them."""
