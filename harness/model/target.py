"""Targets: real architectures (``sm_90a``) and virtual ones (``compute_90``), and lists of them as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

TARGET_PATTERN = r"(sm|compute)_(\d{2,3})([af]?)"
"""The syntax of targets."""

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
        return _parsed(text)

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
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


@lru_cache(maxsize=256)
def _parsed(text: str) -> Target:
    match = _PATTERN.fullmatch(text.strip())
    if not match:
        raise TargetError(f"{text!r} is not a target: write sm_80, sm_90a or compute_80")
    return Target(virtual=match[1] == "compute", cc=int(match[2]), suffix=match[3])


KNOWN_TARGETS: tuple[Target, ...] = tuple(
    Target.parse(f"{kind}_{name}") for kind in ("sm", "compute") for name in _CAPABILITIES
)
"""Every target that some supported toolkit knows, in sorting order."""

OLD_TARGETS: tuple[Target, ...] = tuple(Target.parse(f"{kind}_{name}") for kind in ("sm", "compute") for name in _OLD)
"""Targets that only CUDA 11 knows."""

DEFAULT_TARGETS = "sm_50,sm_60,sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120"
"""One target for each generation, from Maxwell to both Blackwells."""


def parse_targets(text: str) -> list[Target]:
    """Read ``sm_75..sm_120,sm_90a``, ``compute_80`` or ``all``, in the order of architectures.

    A range covers the targets of one kind without suffix; ``all`` is every known one. ``80`` and ``8.0`` are ``sm_80``.

    Raises
    ------
    TargetError
        On what is not spelled like a target, and on an empty range.
    """
    found: dict[Target, None] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        if part == "all":
            found.update(dict.fromkeys(KNOWN_TARGETS))
        elif ".." in part:
            low, high = (_target(end) for end in part.split("..", 1))
            if low.virtual != high.virtual:
                raise TargetError(f"{part!r} mixes real and virtual architectures")
            within = [
                target
                for target in KNOWN_TARGETS
                if target.virtual == low.virtual and not target.suffix and low.cc <= target.cc <= high.cc
            ]
            if not within:
                raise TargetError(f"no known target lies in {part}")
            found.update(dict.fromkeys(within))
        else:
            found[_target(part)] = None
    if not found:
        raise TargetError(f"{text!r} names no target: write sm_80, sm_75..sm_120 or all")
    return sorted(found, key=lambda target: target.sort_key)


def check_known(target: Target) -> None:
    """Raise `TargetError` for a target that no CUDA release has, with those that are nearest to it."""
    if target in KNOWN_TARGETS or target in OLD_TARGETS:
        return
    kind = [known for known in KNOWN_TARGETS if known.virtual == target.virtual]
    near = [known for known in kind if known.cc == target.cc]
    if not near:
        plain = [known for known in kind if not known.suffix]
        below = [known for known in plain if known.cc < target.cc]
        near = [*below[-1:], *[known for known in plain if known.cc > target.cc][:1]]
    names = " and ".join(map(str, near))
    raise TargetError(f"no CUDA release knows {target}; the nearest {'are' if len(near) > 1 else 'is'} {names}")


def _target(text: str) -> Target:
    """``sm_80``, or its number alone as ``nvidia-smi`` and device queries have it: ``80``, ``8.0``, ``90a``."""
    number = re.fullmatch(r"\s*(?:(\d{2,3})|(\d{1,2})\.(\d))([af]?)\s*", text)
    return Target.parse(f"sm_{number[1] or number[2] + number[3]}{number[4]}" if number else text)
