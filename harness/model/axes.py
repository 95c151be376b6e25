"""Targets as users write them on the command line."""

from __future__ import annotations

from harness.model.target import KNOWN_TARGETS, Target, TargetError

DEFAULT_TARGETS = "sm_50,sm_60,sm_70,sm_75,sm_80,sm_89,sm_90,sm_100,sm_120"
"""One target for each generation, from Maxwell to both Blackwells."""


def parse_targets(text: str) -> list[Target]:
    """Read ``sm_75..sm_120,sm_90a``, ``compute_80`` or ``all``, in the order of architectures.

    A range takes in the targets without suffix of one kind; ``all`` is every known one.

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
            low, high = (Target.parse(end) for end in part.split("..", 1))
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
            found[Target.parse(part)] = None
    if not found:
        raise TargetError(f"{text!r} names no target: write sm_80, sm_75..sm_120 or all")
    return sorted(found, key=lambda target: target.sort_key)
