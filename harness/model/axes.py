"""Targets as users write them on the command line."""

from __future__ import annotations

import re

from harness.model.target import KNOWN_TARGETS, OLD_TARGETS, Target, TargetError

DEFAULT_TARGETS = "sm_50,sm_60,sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120"
"""One target for each generation, from Maxwell to both Blackwells."""


def parse_targets(text: str) -> list[Target]:
    """Read ``sm_75..sm_120,sm_90a``, ``compute_80`` or ``all``, in the order of architectures.

    A range takes in the targets without suffix of one kind; ``all`` is every known one. ``80`` and ``8.0`` stand for ``sm_80``.

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
