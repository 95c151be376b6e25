"""Cells: one variant of one case, for one toolchain and one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from harness.model.case import Case, Variant
from harness.model.condition import Version
from harness.model.condition_names import cell_facts, toolchain_facts
from harness.model.host_compiler import UNASKED, HostCompiler
from harness.model.target import Target

BUNDLED: Final = "@bundled"
"""Ends the name of a toolkit that a library brings along."""


@dataclass(frozen=True, kw_only=True, order=True)
class ToolkitRef:
    """A CUDA release by name, with the release whose headers it is paired with.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    headers : str
        The release of the headers; the compiler's own by default.
    home : str
        Folder of a toolkit that is on the machine already; empty for one out of wheels.
    local : bool
        Whether it is one of those.
    bundled : bool
        Whether it is what a library's own wheel has of that release, such as Triton's ptxas; nothing else is installed for it.
    """

    release: str
    headers: str
    home: str = field(default="", compare=False)
    local: bool = False
    bundled: bool = False

    def __str__(self) -> str:
        name = self.release + ("@local" if self.local else BUNDLED if self.bundled else "")
        return name if self.headers == self.release else f"{name}+headers{self.headers}"

    @property
    def sort_key(self) -> tuple[Version, Version]:
        """Oldest release first."""
        return (Version(self.release), Version(self.headers))


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Backend, library version and toolkit, as a cell asks for them.

    Parameters
    ----------
    backend : str
        Name of the backend.
    library : str
        Version of the library behind the backend that the environment declares to have
        (``"13.6.0"``); empty for a backend without one.
    toolkit : ToolkitRef
        The CUDA release.
    environment : str
        Name of the environment that the cell runs in (``"cupy13"``).
    packages : Mapping[str, str]
        Versions of the distributions that the environment declares, for conditions.
    device : str
        Name of the real device that the cells go on to load, launch and verify on; empty without one.
    host : HostCompiler
        The host compiler for nvcc; the machine's own by default.
    """

    backend: str
    library: str
    toolkit: ToolkitRef
    environment: str = ""
    device: str = ""
    packages: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    host: HostCompiler = UNASKED

    @cached_property
    def name(self) -> str:
        """``cupy-jitify@13.6.0+cuda12.4``, as cell ids spell it."""
        library = f"@{self.library}" if self.library else ""
        return f"{self.backend}{library} cuda{self.toolkit}"

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Values of the names that conditions may use, as far as all its cells have the same."""
        return toolchain_facts(
            backend=self.backend,
            library=self.library,
            release=self.toolkit.release,
            headers=self.toolkit.headers,
            device=bool(self.device),
            packages=self.packages,
            host=self.host,
        )


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The unit of work."""

    case: Case
    variant: Variant
    toolchain: Toolchain
    target: Target

    @cached_property
    def id(self) -> str:
        """Unique and readable: ``wmma/fragments[fragment=tf32] cupy-jitify@13.6.0 cuda12.4 sm_80``.

        A program without a case is named after its file, with its options in place of the variant. A requested host compiler follows the target (``… sm_80 with gcc-13``). On a real device it ends
        with its name (``… sm_90 on NVIDIA H200``): what a virtual and a real device tell of one program are two results, and both are kept.
        """
        variant = f"[{self.variant.name}]" if self.variant.name else ""
        host = f" with {self.toolchain.host.name}" if self.toolchain.host.name else ""
        device = f" on {self.toolchain.device}" if self.toolchain.device else ""
        return f"{self.case.name}{variant} {self.toolchain.name} {self.target}{host}{device}"

    def facts(self) -> dict[str, Any]:
        """Values of the names that conditions may use (`harness.model.condition.NAMES`)."""
        return cell_facts(self.toolchain.facts, self.target, self.variant.libraries, self.variant.labels)
