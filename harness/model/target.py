"""Targets: real architectures (``sm_90a``) and virtual ones (``compute_90``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

TARGET_PATTERN = r"(sm|compute)_(\d{2,3})([af]?)"
"""How targets are spelled."""

_PATTERN = re.compile(TARGET_PATTERN)

# Compute capabilities that the toolkits of toolkits/releases.toml know, as `ptxas --help` lists them
# (CUDA 11.8 to 13.5). Only the order and the spelling come from here: whether a toolkit knows one
# is asked of that toolkit.
_CAPABILITIES = tuple(
    "50 52 53 60 61 62 70 72 75 80 86 87 88 89 90 90a 100 100a 100f 101 101a 101f "
    "103 103a 103f 107 107a 107f 110 110a 110f 120 120a 120f 121 121a 121f".split()
)
# CUDA 11.8 knows these, too; they are no part of "all", for nothing later does.
_OLD = ("35", "37")


class TargetError(ValueError):
    """A target that is not spelled like one."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One architecture to compile for.

    Parameters
    ----------
    virtual : bool
        True for ``compute_XY`` (the result is PTX), False for ``sm_XY`` (the result is a cubin).
    cc : int
        Compute capability as the field writes it in one number: 80 for 8.0, 121 for 12.1.
    suffix : str
        ``""``, ``"a"`` (architecture-specific) or ``"f"`` (family-specific).
    """

    virtual: bool
    cc: int
    suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read ``sm_90a`` or ``compute_80``.

        Raises
        ------
        TargetError
            When `text` is spelled differently.
        """
        match = _PATTERN.fullmatch(text.strip())
        if not match:
            raise TargetError(f"{text!r} is not a target: write sm_80, sm_90a or compute_80")
        return cls(virtual=match[1] == "compute", cc=int(match[2]), suffix=match[3])

    def __str__(self) -> str:
        return f"{'compute' if self.virtual else 'sm'}_{self.cc}{self.suffix}"

    @property
    def capability(self) -> str:
        """Compute capability as CUDA's documentation writes it: ``"8.0"``."""
        return f"{self.cc // 10}.{self.cc % 10}"

    @property
    def real(self) -> Target:
        """The real architecture of the same compute capability."""
        return Target(virtual=False, cc=self.cc, suffix=self.suffix)

    @property
    def as_virtual(self) -> Target:
        """The virtual architecture of the same compute capability."""
        return Target(virtual=True, cc=self.cc, suffix=self.suffix)

    @property
    def sort_key(self) -> tuple[bool, int, str]:
        """Real before virtual, then by compute capability, then by suffix."""
        return (self.virtual, self.cc, self.suffix)


KNOWN_TARGETS: tuple[Target, ...] = tuple(
    Target.parse(f"{kind}_{name}") for kind in ("sm", "compute") for name in _CAPABILITIES
)
"""Every target that some supported toolkit knows, in sorting order."""

OLD_TARGETS: tuple[Target, ...] = tuple(Target.parse(f"{kind}_{name}") for kind in ("sm", "compute") for name in _OLD)
"""Targets that only CUDA 11 knows."""
